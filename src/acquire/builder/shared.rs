//! What [`Acquire`](crate::Acquire) and [`TryAcquire`](crate::TryAcquire) have in common.

/// Defines the methods and traits that both builders share, for a builder with the fields `options` and `guard`.
macro_rules! builder {
    ($builder:ident) => {
        impl<G> $builder<G> {
            pub(crate) fn new(primitive: &Primitive, operation: &'static str, amount: u32) -> Self {
                Self { options: Options::of_one(primitive, operation, amount), guard: PhantomData }
            }

            pub(crate) fn of_several(parts: &[Part], operation: &'static str) -> Self {
                Self { options: Options::of_several(parts, operation), guard: PhantomData }
            }

            /// The same acquisition with another type of guard.
            pub(crate) fn with_guard<H>(self) -> $builder<H> {
                $builder { options: self.options, guard: PhantomData }
            }

            /// The executor of the first primitive. An acquisition without primitives has none, which is an error.
            pub(crate) fn executor(&self) -> Result<Arc<dyn Executor>> {
                self.options.executor()
            }

            pub(crate) fn held_by(mut self, holder: &Holder) -> Self {
                self.options.choices.holder = Some(*holder);
                self
            }

            /// Takes no notice of the caller's [`Holder`], so that the hold cannot be re-entered. A second leadership
            /// of the same holder would otherwise begin while the first one lasts.
            pub(crate) fn ignoring_holder(mut self) -> Self {
                self.options.choices.ignores_holder = true;
                self
            }

            pub(crate) fn denying_reentry(mut self) -> Self {
                self.options.choices.denies_reentry = true;
                self
            }

            /// Sets the renewed lease of this hold: 100 ms ([`MIN_LEASE`](crate::MIN_LEASE)) to 24 h
            /// ([`MAX_LEASE`](crate::MAX_LEASE)). The default is the [client's lease](crate::ConfigBuilder::lease).
            ///
            /// The watchdog renews the lease every third of its length for as long as the guard lives. The lease limits
            /// how long a crashed holder blocks others. It does not limit how long the hold may last.
            ///
            /// Re-entry keeps the lease of the first acquisition. A [non-fair](crate::Acquire::non_fair) acquisition
            /// joins a cohort only if its lease equals that of the client.
            pub fn lease(mut self, lease: Duration) -> Self {
                self.options.choices = self.options.choices.with_lease(lease, false);
                self
            }

            /// Sets a fixed lease: the hold expires after `lease`, and the watchdog does not renew it. The range is 100
            /// ms ([`MIN_LEASE`](crate::MIN_LEASE)) to 24 h ([`MAX_LEASE`](crate::MAX_LEASE)).
            ///
            /// The guard's `extend`, such as [`LockGuard::extend`](crate::LockGuard::extend), prolongs a fixed lease.
            /// [`lease`](Self::lease) and [`hold_at_most`](Self::hold_at_most) configure renewed leases: either of them
            /// together with `expires_after` is an [`InvalidInput`](crate::ErrorKind::InvalidInput) error.
            ///
            /// Re-entry keeps the lease of the first acquisition. A [non-fair](crate::Acquire::non_fair) acquisition
            /// with a fixed lease joins no cohort.
            pub fn expires_after(mut self, lease: Duration) -> Self {
                self.options.choices = self.options.choices.with_lease(lease, true);
                self
            }

            /// Limits how long the watchdog renews the hold: at least 100 ms ([`MIN_LEASE`](crate::MIN_LEASE)), with no
            /// upper bound. By default a hold is renewed for as long as its guard lives.
            ///
            /// At most `limit` after the grant the hold expires ([`Loss::Expired`](crate::Loss::Expired)), in this
            /// process and in Redis, even if the guard lives on. The acquisition and each renewal ask for the lease or
            /// for the rest of the limit, whichever is shorter.
            ///
            /// The limit is counted from when this process learns of the grant; if it is granted at once, from before
            /// the request was sent.
            ///
            /// Re-entry, downgrade and upgrade keep the limit of the hold. A [non-fair](crate::Acquire::non_fair)
            /// acquisition with a limit joins no cohort.
            ///
            /// # Examples
            /// ```no_run
            /// # use std::time::Duration;
            /// # async fn example(client: bowline::Client) -> bowline::Result<()> {
            /// // A crash frees the lock within 5 s. A job that hangs loses the lock after 10 min.
            /// let limit = Duration::from_secs(600);
            /// let guard = client.lock("job").lock().lease(Duration::from_secs(5)).hold_at_most(limit).await?;
            /// # guard.release().await }
            /// ```
            pub fn hold_at_most(mut self, limit: Duration) -> Self {
                self.options.choices.at_most = Some(limit);
                self
            }

            /// Keeps the lock for up to `time` after its guard, for the next acquisition of this client. `time` is more
            /// than zero, and at most a third of the client's [lease](crate::ConfigBuilder::lease). By default a lock
            /// is released with its guard. It is for a [`Lock`](crate::Lock), and an [`RwLock`](crate::RwLock) that is
            /// acquired to write.
            ///
            /// In that time the lock is idle. An acquisition of this client takes the idle lock without a command, and
            /// gets a larger token. That acquisition must be [non-fair](crate::Acquire::non_fair) or retained, and
            /// write if it is of an `RwLock`; this option makes an acquisition non-fair. A client that waits for the
            /// lock asks this client for it. This client releases an idle lock at once, and a used lock with the guard,
            /// after at most two hand-off budgets.
            ///
            /// Each acquisition with this option begins the time anew. So this client keeps the lock for as long as it
            /// goes on acquiring it, until another client asks.
            ///
            /// # Guaranteed
            /// - Another client waits for one message and one release while the lock is idle. If the message is lost,
            ///   the other client asks again, a third of its own lease later at the latest. A lock that has been idle
            ///   for `time` is released in any case.
            /// - A lock that was granted from the queue is not kept, because others may wait behind it.
            /// - [`close`](crate::Client::close), the drop of the last handle, and the end of the runtime release an
            ///   idle lock.
            /// - A guard of an idle lock begins with at least a third of the lease. Idle locks are not renewed; a
            ///   renewal that came due meanwhile is sent when the guard begins.
            ///
            /// # Not guaranteed
            /// A client that crashes while the lock is idle blocks others for the rest of the lease, as one that
            /// crashes while it holds. A user that may not publish to channels cannot ask. It waits until the lock has
            /// been idle for `time`, or until this client asks Redis for more tokens: after at most 512 acquisitions.
            ///
            /// # Errors
            /// [`InvalidInput`](crate::ErrorKind::InvalidInput) for another `time`, for anything else, such as a
            /// reader, permits, a [`MultiLock`](crate::MultiLock) or a [`RedLock`](crate::RedLock), and together with a
            /// [`lease`](Self::lease) that is not the client's, a [fixed lease](Self::expires_after), a
            /// [limit](Self::hold_at_most) or [replicas](Self::acknowledged_by).
            ///
            /// # Examples
            /// ```no_run
            /// # use std::time::Duration;
            /// # async fn example(client: bowline::Client) -> bowline::Result<()> {
            /// // Takes the lock once, and then without a command until another client asks for it.
            /// for order in 0..1_000 {
            ///     let guard = client.lock("tenant:7").lock().retained(Duration::from_secs(5)).await?;
            ///     println!("order {order} with token {}", guard.token());
            /// }
            /// # Ok(()) }
            /// ```
            pub fn retained(mut self, time: Duration) -> Self {
                self.options.choices.non_fair = true;
                self.options.choices.retained = Some(time);
                self
            }

            /// As [`retained`](Self::retained), if there is a time.
            pub(crate) fn retained_for(self, time: Option<Duration>) -> Self {
                match time {
                    Some(time) => self.retained(time),
                    None => self,
                }
            }

            /// How many replicas must acknowledge the grant and each renewal of this hold, up to 100, instead of the
            /// client's [default](crate::ConfigBuilder::acknowledged_by). 0 waits for none.
            ///
            /// An acquisition that too few replicas acknowledge within the client's
            /// [`retry_timeout`](crate::ConfigBuilder::retry_timeout), or its
            /// [`command_timeout`](crate::ConfigBuilder::command_timeout) if that is longer, is released and fails with
            /// [`Unacknowledged`](crate::ErrorKind::Unacknowledged). So does one whose lease ends before. Re-entry
            /// keeps the choice of the hold. A [non-fair](crate::Acquire::non_fair) acquisition with another choice
            /// than the client's joins no cohort.
            pub fn acknowledged_by(mut self, replicas: u32) -> Self {
                self.options.choices.replicas = Some(replicas);
                self
            }
        }

        // Not derived, because a derive would require `G` to be `Clone` and `Debug`.
        impl<G> Clone for $builder<G> {
            fn clone(&self) -> Self {
                Self { options: self.options.clone(), guard: PhantomData }
            }
        }

        impl<G> fmt::Debug for $builder<G> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.options.fmt(f)
            }
        }
    };
}

pub(super) use builder;
