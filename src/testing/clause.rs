//! The clauses of both contracts.

use std::fmt;

macro_rules! clauses {
    ($($(#[$doc:meta])* $clause:ident: $sentence:literal),+ $(,)?) => {
        /// One clause of the contract of [`Connection`](crate::Connection) or [`Executor`](crate::Executor). Its
        /// `Display` is the sentence that an implementation has to keep. Later versions may add clauses.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Clause {
            $(#[doc = $sentence] $(#[$doc])* $clause),+
        }

        impl fmt::Display for Clause {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $(Self::$clause => $sentence),+
                })
            }
        }
    };
}

clauses! {
    Connects: "The function that connects returns a connection each time it is called.",
    Replies: "A call returns what its script replies, whatever the type.",
    NewScripts: "A call runs a script that the server has never seen.",
    LostScripts: "A call runs a script that the server has lost, as after `SCRIPT FLUSH`.",
    OwnAnswers: "Each of many calls under way gets its own answer.",
    Order: "While the connection stays up, calls are executed in the order of their first polls.",
    Batches: "A batch is executed in its order, its answers are in that order, and an error is the answer of its call only.",
    Refusals: "An error of the server is `Refused`, with the server's code.",
    DroppedCalls: "A dropped call is executed at most once, and the calls around it get their own answers.",
    KeptCalls: "A call that is kept and not polled holds up no other one.",
    AtMostOnce: "A call is executed at most once, also if its answer is lost.",
    Outcomes: "What a call returns is true: it was executed if it has an answer, it was not if it fails with \
        `Unreachable`, and it fails with `Unknown` if it was executed and its answer is lost.",
    Deadline: "Every call returns within the `command_timeout`, whatever the server does.",
    Reconnects: "The connection reconnects after its sockets were closed.",
    Acknowledged: "Calls that wait for replicas are answered in order, or all are `Unsupported` and none is sent.",
    Subscribed: "When `subscribe` returns, the server that executes the calls has the subscription.",
    Messages: "Every message that was published while the subscription stood is delivered once, in order.",
    Channels: "A subscription delivers the messages of its own channel only.",
    Gaps: "A subscription that was interrupted says `Notice::Gap` before its next message.",
    BothGaps: "An interruption is told by a gap when it is noticed, and by another one when the subscription is restored.",
    Restored: "A subscription that was interrupted is restored.",
    Unsubscribes: "Dropping the stream of a subscription ends it on the server.",
    DroppedSubscribe: "No subscription remains of a `subscribe` that was dropped.",
    WatchedKeys: "Every change of a watched key is reported, or `watch_key` fails with `Unsupported`.",
    CloseFailsCalls: "After `close`, calls under way and later ones fail with `Closed`, and no later one is executed.",
    CloseEndsStreams: "After `close`, the streams of subscriptions end.",
    DropCloses: "Dropping the connection closes it.",
    WithoutRuntime: "The connection without a runtime reaches the same server.",
    Spawns: "`spawn` may be called on any thread and in a task, and runs the task until it is done.",
    TasksRunBeside: "Tasks run side by side: they can wait for one another.",
    TasksOutlive: "A task goes on when the task or thread that spawned it has ended.",
    SleepsLongEnough: "After `sleep(d)`, `now` has advanced by at least `d`.",
    SleepCountsFromCall: "A sleep is counted from the call of `sleep`, and not from its first poll.",
    SleepsSideBySide: "Sleeps run side by side, and a shorter one ends before a much longer one.",
    DroppedSleeps: "A sleep can be dropped at any time, and no other one is affected.",
    HugeSleeps: "A sleep of any length neither panics nor ends early.",
    SleepsMove: "A sleep that was polled can be sent to another thread, and wakes that one.",
    Monotonic: "`now` never goes back, on whatever threads it is read.",
    BlocksOn: "`block_on` runs a future that borrows to its end, and its tasks and timers go on meanwhile.",
    BlocksManyThreads: "Several threads can be in `block_on` at the same time.",
    ShutDownDropsTasks: "After the runtime is shut down, `spawn` drops the task.",
    ShutDownEndsSleeps: "After the runtime is shut down, sleeps resolve early, but not in their first poll.",
    ShutDownEndsBlockOn: "After the runtime is shut down, `block_on` of a future that never ends fails with `Closed`.",
}
