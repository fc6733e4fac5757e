# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_bowline_global_optspecs
    string join \n url= config= username= password-file= cacert= cert= key= prefix= h/help V/version
end

function __fish_bowline_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_bowline_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_bowline_using_subcommand
    set -l cmd (__fish_bowline_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c bowline -n "__fish_bowline_needs_command" -l url -d 'The servers: redis://host/, rediss:// for TLS, unix://, redis-sentinel://host,host/?master=name, redis-cluster://host,host. A password in an argument is visible to other users of this machine: use --password-file or the environment' -r
complete -c bowline -n "__fish_bowline_needs_command" -l config -d 'A file in TOML with url, username, password_file and so on, and prefix, command_timeout, retry_timeout' -r -F
complete -c bowline -n "__fish_bowline_needs_command" -l username -d 'The user on the servers' -r
complete -c bowline -n "__fish_bowline_needs_command" -l password-file -d 'A file whose only line is the password. The environment variable BOWLINE_PASSWORD is the password itself' -r
complete -c bowline -n "__fish_bowline_needs_command" -l cacert -d 'The certificates of the authorities to trust, in PEM, instead of those of the system' -r
complete -c bowline -n "__fish_bowline_needs_command" -l cert -d 'The client\'s own certificate, in PEM' -r
complete -c bowline -n "__fish_bowline_needs_command" -l key -d 'The key of the client\'s own certificate, in PEM' -r
complete -c bowline -n "__fish_bowline_needs_command" -l prefix -d 'The start of all keys. Programs with another prefix do not see these locks. The default is bowline' -r
complete -c bowline -n "__fish_bowline_needs_command" -s h -l help -d 'Print help'
complete -c bowline -n "__fish_bowline_needs_command" -s V -l version -d 'Print version'
complete -c bowline -n "__fish_bowline_needs_command" -f -a "run" -d 'Runs a command while it holds a lock'
complete -c bowline -n "__fish_bowline_needs_command" -f -a "inspect" -d 'Shows who holds a name and who waits for it. Exits with 1 if the name is not in use'
complete -c bowline -n "__fish_bowline_needs_command" -f -a "watch" -d 'Shows who gets a name and who loses it, as it happens, until it is stopped. The user needs the right +client|tracking'
complete -c bowline -n "__fish_bowline_needs_command" -f -a "ls" -d 'Lists the names that are in use. The user needs the rights +scan and +info'
complete -c bowline -n "__fish_bowline_needs_command" -f -a "release" -d 'Takes a lock, its readers and writer, or permits from the holders, at most 1,000 holds a call. The holders are told, and may act until then. Exits with 1 if nothing is held'
complete -c bowline -n "__fish_bowline_needs_command" -f -a "deadlocks" -d 'Finds clients that wait for each other. Exits with 1 if there are any'
complete -c bowline -n "__fish_bowline_needs_command" -f -a "leader" -d 'Shows who leads in an election. Exits with 1 if nobody leads'
complete -c bowline -n "__fish_bowline_needs_command" -f -a "latch" -d 'Sets, counts down, waits for and shows latches'
complete -c bowline -n "__fish_bowline_needs_command" -f -a "ping" -d 'Asks the servers who they are, and tells what bowline would warn of. Exits with 1 if one does not answer'
complete -c bowline -n "__fish_bowline_needs_command" -f -a "doctor" -d 'Checks the servers against docs/deployments.md of bowline, with one verdict a line'
complete -c bowline -n "__fish_bowline_needs_command" -f -a "top" -d 'Shows the names in use in a table that follows them'
complete -c bowline -n "__fish_bowline_needs_command" -f -a "completions" -d 'Writes the completions for a shell'
complete -c bowline -n "__fish_bowline_needs_command" -f -a "generate" -d 'Writes the man pages and all completions into a folder, for packages'
complete -c bowline -n "__fish_bowline_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c bowline -n "__fish_bowline_using_subcommand run" -l permits -d 'Takes N permits of the semaphore NAME, which has LIMIT' -r
complete -c bowline -n "__fish_bowline_using_subcommand run" -l once -d 'Runs at most once in each period of that length, over all machines, and never waits. Periods are those of the server\'s clock. A command that fails has run, too, unless --retry-on-error is given' -r
complete -c bowline -n "__fish_bowline_using_subcommand run" -l all -d 'Takes all of these locks, in an order that is the same everywhere. Instead of NAME' -r
complete -c bowline -n "__fish_bowline_using_subcommand run" -l timeout -d 'Waits for that long, and then exits with the conflict exit code. Without it, it waits for as long as it takes' -r
complete -c bowline -n "__fish_bowline_using_subcommand run" -l lease -d 'The lease, which is renewed while the command runs: 1 s to 24 h. It ends by itself if this machine fails' -r
complete -c bowline -n "__fish_bowline_using_subcommand run" -l kill-after -d 'The time from SIGTERM to SIGKILL: at most a third of the lease. The default is 5 s, or a third of the lease if that is shorter' -r
complete -c bowline -n "__fish_bowline_using_subcommand run" -l at-most -d 'Ends a command that runs for longer, and exits with 124' -r
complete -c bowline -n "__fish_bowline_using_subcommand run" -s E -l conflict-exit-code -d 'The exit code if the lock was not granted. The default is 1. With --once, a period that has had its run is no error, and the default is 0' -r
complete -c bowline -n "__fish_bowline_using_subcommand run" -l label -d 'What this holder is called where it is shown: up to 64 bytes. The default is the host and the process id' -r
complete -c bowline -n "__fish_bowline_using_subcommand run" -l url -d 'The servers: redis://host/, rediss:// for TLS, unix://, redis-sentinel://host,host/?master=name, redis-cluster://host,host. A password in an argument is visible to other users of this machine: use --password-file or the environment' -r
complete -c bowline -n "__fish_bowline_using_subcommand run" -l config -d 'A file in TOML with url, username, password_file and so on, and prefix, command_timeout, retry_timeout' -r -F
complete -c bowline -n "__fish_bowline_using_subcommand run" -l username -d 'The user on the servers' -r
complete -c bowline -n "__fish_bowline_using_subcommand run" -l password-file -d 'A file whose only line is the password. The environment variable BOWLINE_PASSWORD is the password itself' -r
complete -c bowline -n "__fish_bowline_using_subcommand run" -l cacert -d 'The certificates of the authorities to trust, in PEM, instead of those of the system' -r
complete -c bowline -n "__fish_bowline_using_subcommand run" -l cert -d 'The client\'s own certificate, in PEM' -r
complete -c bowline -n "__fish_bowline_using_subcommand run" -l key -d 'The key of the client\'s own certificate, in PEM' -r
complete -c bowline -n "__fish_bowline_using_subcommand run" -l prefix -d 'The start of all keys. Programs with another prefix do not see these locks. The default is bowline' -r
complete -c bowline -n "__fish_bowline_using_subcommand run" -l shared -d 'Reads under the read-write lock NAME: any number of readers at once, and no writer'
complete -c bowline -n "__fish_bowline_using_subcommand run" -l exclusive -d 'Writes under the read-write lock NAME: alone'
complete -c bowline -n "__fish_bowline_using_subcommand run" -l elect -d 'Campaigns in the election NAME, and runs the command while it leads'
complete -c bowline -n "__fish_bowline_using_subcommand run" -l retry-on-error -d 'With --once: the next call of the same period runs the command again after one that failed'
complete -c bowline -n "__fish_bowline_using_subcommand run" -l try -d 'Does not wait: exits with the conflict exit code if the lock is not free'
complete -c bowline -n "__fish_bowline_using_subcommand run" -s q -l quiet -d 'Shows neither the line of progress on a terminal nor a message when --timeout ends the wait. All else is told'
complete -c bowline -n "__fish_bowline_using_subcommand run" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c bowline -n "__fish_bowline_using_subcommand inspect" -l kind -d 'Only this kind. Without it, all kinds that are in use under this name' -r -f -a "lock\t''
rw\t''
semaphore\t''
latch\t''
barrier\t''
double-barrier\t''
once\t''
election\t''
rate\t''
redlock\t''"
complete -c bowline -n "__fish_bowline_using_subcommand inspect" -l url -d 'The servers: redis://host/, rediss:// for TLS, unix://, redis-sentinel://host,host/?master=name, redis-cluster://host,host. A password in an argument is visible to other users of this machine: use --password-file or the environment' -r
complete -c bowline -n "__fish_bowline_using_subcommand inspect" -l config -d 'A file in TOML with url, username, password_file and so on, and prefix, command_timeout, retry_timeout' -r -F
complete -c bowline -n "__fish_bowline_using_subcommand inspect" -l username -d 'The user on the servers' -r
complete -c bowline -n "__fish_bowline_using_subcommand inspect" -l password-file -d 'A file whose only line is the password. The environment variable BOWLINE_PASSWORD is the password itself' -r
complete -c bowline -n "__fish_bowline_using_subcommand inspect" -l cacert -d 'The certificates of the authorities to trust, in PEM, instead of those of the system' -r
complete -c bowline -n "__fish_bowline_using_subcommand inspect" -l cert -d 'The client\'s own certificate, in PEM' -r
complete -c bowline -n "__fish_bowline_using_subcommand inspect" -l key -d 'The key of the client\'s own certificate, in PEM' -r
complete -c bowline -n "__fish_bowline_using_subcommand inspect" -l prefix -d 'The start of all keys. Programs with another prefix do not see these locks. The default is bowline' -r
complete -c bowline -n "__fish_bowline_using_subcommand inspect" -l json -d 'Writes JSON, one document. Times are in milliseconds'
complete -c bowline -n "__fish_bowline_using_subcommand inspect" -s h -l help -d 'Print help'
complete -c bowline -n "__fish_bowline_using_subcommand watch" -l kind -d 'What the name is the name of: a lock, if this is not given' -r -f -a "lock\t''
rw\t''
semaphore\t''
latch\t''
barrier\t''
double-barrier\t''
once\t''
election\t''
rate\t''
redlock\t''"
complete -c bowline -n "__fish_bowline_using_subcommand watch" -l count -d 'Exits after so many changes' -r
complete -c bowline -n "__fish_bowline_using_subcommand watch" -l url -d 'The servers: redis://host/, rediss:// for TLS, unix://, redis-sentinel://host,host/?master=name, redis-cluster://host,host. A password in an argument is visible to other users of this machine: use --password-file or the environment' -r
complete -c bowline -n "__fish_bowline_using_subcommand watch" -l config -d 'A file in TOML with url, username, password_file and so on, and prefix, command_timeout, retry_timeout' -r -F
complete -c bowline -n "__fish_bowline_using_subcommand watch" -l username -d 'The user on the servers' -r
complete -c bowline -n "__fish_bowline_using_subcommand watch" -l password-file -d 'A file whose only line is the password. The environment variable BOWLINE_PASSWORD is the password itself' -r
complete -c bowline -n "__fish_bowline_using_subcommand watch" -l cacert -d 'The certificates of the authorities to trust, in PEM, instead of those of the system' -r
complete -c bowline -n "__fish_bowline_using_subcommand watch" -l cert -d 'The client\'s own certificate, in PEM' -r
complete -c bowline -n "__fish_bowline_using_subcommand watch" -l key -d 'The key of the client\'s own certificate, in PEM' -r
complete -c bowline -n "__fish_bowline_using_subcommand watch" -l prefix -d 'The start of all keys. Programs with another prefix do not see these locks. The default is bowline' -r
complete -c bowline -n "__fish_bowline_using_subcommand watch" -l json -d 'Writes JSON, one document in each line. Times are in milliseconds'
complete -c bowline -n "__fish_bowline_using_subcommand watch" -s h -l help -d 'Print help'
complete -c bowline -n "__fish_bowline_using_subcommand ls" -l kind -d 'Only this kind' -r -f -a "lock\t''
rw\t''
semaphore\t''
latch\t''
barrier\t''
double-barrier\t''
once\t''
election\t''
rate\t''
redlock\t''"
complete -c bowline -n "__fish_bowline_using_subcommand ls" -l url -d 'The servers: redis://host/, rediss:// for TLS, unix://, redis-sentinel://host,host/?master=name, redis-cluster://host,host. A password in an argument is visible to other users of this machine: use --password-file or the environment' -r
complete -c bowline -n "__fish_bowline_using_subcommand ls" -l config -d 'A file in TOML with url, username, password_file and so on, and prefix, command_timeout, retry_timeout' -r -F
complete -c bowline -n "__fish_bowline_using_subcommand ls" -l username -d 'The user on the servers' -r
complete -c bowline -n "__fish_bowline_using_subcommand ls" -l password-file -d 'A file whose only line is the password. The environment variable BOWLINE_PASSWORD is the password itself' -r
complete -c bowline -n "__fish_bowline_using_subcommand ls" -l cacert -d 'The certificates of the authorities to trust, in PEM, instead of those of the system' -r
complete -c bowline -n "__fish_bowline_using_subcommand ls" -l cert -d 'The client\'s own certificate, in PEM' -r
complete -c bowline -n "__fish_bowline_using_subcommand ls" -l key -d 'The key of the client\'s own certificate, in PEM' -r
complete -c bowline -n "__fish_bowline_using_subcommand ls" -l prefix -d 'The start of all keys. Programs with another prefix do not see these locks. The default is bowline' -r
complete -c bowline -n "__fish_bowline_using_subcommand ls" -l json -d 'Writes JSON, one document. Times are in milliseconds'
complete -c bowline -n "__fish_bowline_using_subcommand ls" -s h -l help -d 'Print help'
complete -c bowline -n "__fish_bowline_using_subcommand release" -l kind -d 'What the name is the name of: lock, rw or semaphore. Needed only if the name is held as several of these' -r -f -a "lock\t''
rw\t''
semaphore\t''
latch\t''
barrier\t''
double-barrier\t''
once\t''
election\t''
rate\t''
redlock\t''"
complete -c bowline -n "__fish_bowline_using_subcommand release" -l url -d 'The servers: redis://host/, rediss:// for TLS, unix://, redis-sentinel://host,host/?master=name, redis-cluster://host,host. A password in an argument is visible to other users of this machine: use --password-file or the environment' -r
complete -c bowline -n "__fish_bowline_using_subcommand release" -l config -d 'A file in TOML with url, username, password_file and so on, and prefix, command_timeout, retry_timeout' -r -F
complete -c bowline -n "__fish_bowline_using_subcommand release" -l username -d 'The user on the servers' -r
complete -c bowline -n "__fish_bowline_using_subcommand release" -l password-file -d 'A file whose only line is the password. The environment variable BOWLINE_PASSWORD is the password itself' -r
complete -c bowline -n "__fish_bowline_using_subcommand release" -l cacert -d 'The certificates of the authorities to trust, in PEM, instead of those of the system' -r
complete -c bowline -n "__fish_bowline_using_subcommand release" -l cert -d 'The client\'s own certificate, in PEM' -r
complete -c bowline -n "__fish_bowline_using_subcommand release" -l key -d 'The key of the client\'s own certificate, in PEM' -r
complete -c bowline -n "__fish_bowline_using_subcommand release" -l prefix -d 'The start of all keys. Programs with another prefix do not see these locks. The default is bowline' -r
complete -c bowline -n "__fish_bowline_using_subcommand release" -l force -d 'Says that it is meant so: another program loses its lock'
complete -c bowline -n "__fish_bowline_using_subcommand release" -l json -d 'Writes JSON, one document. Times are in milliseconds'
complete -c bowline -n "__fish_bowline_using_subcommand release" -s h -l help -d 'Print help'
complete -c bowline -n "__fish_bowline_using_subcommand deadlocks" -l lasting -d 'Only those that still last after this time' -r
complete -c bowline -n "__fish_bowline_using_subcommand deadlocks" -l url -d 'The servers: redis://host/, rediss:// for TLS, unix://, redis-sentinel://host,host/?master=name, redis-cluster://host,host. A password in an argument is visible to other users of this machine: use --password-file or the environment' -r
complete -c bowline -n "__fish_bowline_using_subcommand deadlocks" -l config -d 'A file in TOML with url, username, password_file and so on, and prefix, command_timeout, retry_timeout' -r -F
complete -c bowline -n "__fish_bowline_using_subcommand deadlocks" -l username -d 'The user on the servers' -r
complete -c bowline -n "__fish_bowline_using_subcommand deadlocks" -l password-file -d 'A file whose only line is the password. The environment variable BOWLINE_PASSWORD is the password itself' -r
complete -c bowline -n "__fish_bowline_using_subcommand deadlocks" -l cacert -d 'The certificates of the authorities to trust, in PEM, instead of those of the system' -r
complete -c bowline -n "__fish_bowline_using_subcommand deadlocks" -l cert -d 'The client\'s own certificate, in PEM' -r
complete -c bowline -n "__fish_bowline_using_subcommand deadlocks" -l key -d 'The key of the client\'s own certificate, in PEM' -r
complete -c bowline -n "__fish_bowline_using_subcommand deadlocks" -l prefix -d 'The start of all keys. Programs with another prefix do not see these locks. The default is bowline' -r
complete -c bowline -n "__fish_bowline_using_subcommand deadlocks" -l json -d 'Writes JSON, one document. Times are in milliseconds'
complete -c bowline -n "__fish_bowline_using_subcommand deadlocks" -s h -l help -d 'Print help'
complete -c bowline -n "__fish_bowline_using_subcommand leader" -l url -d 'The servers: redis://host/, rediss:// for TLS, unix://, redis-sentinel://host,host/?master=name, redis-cluster://host,host. A password in an argument is visible to other users of this machine: use --password-file or the environment' -r
complete -c bowline -n "__fish_bowline_using_subcommand leader" -l config -d 'A file in TOML with url, username, password_file and so on, and prefix, command_timeout, retry_timeout' -r -F
complete -c bowline -n "__fish_bowline_using_subcommand leader" -l username -d 'The user on the servers' -r
complete -c bowline -n "__fish_bowline_using_subcommand leader" -l password-file -d 'A file whose only line is the password. The environment variable BOWLINE_PASSWORD is the password itself' -r
complete -c bowline -n "__fish_bowline_using_subcommand leader" -l cacert -d 'The certificates of the authorities to trust, in PEM, instead of those of the system' -r
complete -c bowline -n "__fish_bowline_using_subcommand leader" -l cert -d 'The client\'s own certificate, in PEM' -r
complete -c bowline -n "__fish_bowline_using_subcommand leader" -l key -d 'The key of the client\'s own certificate, in PEM' -r
complete -c bowline -n "__fish_bowline_using_subcommand leader" -l prefix -d 'The start of all keys. Programs with another prefix do not see these locks. The default is bowline' -r
complete -c bowline -n "__fish_bowline_using_subcommand leader" -l json -d 'Writes JSON, one document. Times are in milliseconds'
complete -c bowline -n "__fish_bowline_using_subcommand leader" -s h -l help -d 'Print help'
complete -c bowline -n "__fish_bowline_using_subcommand latch; and not __fish_seen_subcommand_from set count-down wait show delete help" -l url -d 'The servers: redis://host/, rediss:// for TLS, unix://, redis-sentinel://host,host/?master=name, redis-cluster://host,host. A password in an argument is visible to other users of this machine: use --password-file or the environment' -r
complete -c bowline -n "__fish_bowline_using_subcommand latch; and not __fish_seen_subcommand_from set count-down wait show delete help" -l config -d 'A file in TOML with url, username, password_file and so on, and prefix, command_timeout, retry_timeout' -r -F
complete -c bowline -n "__fish_bowline_using_subcommand latch; and not __fish_seen_subcommand_from set count-down wait show delete help" -l username -d 'The user on the servers' -r
complete -c bowline -n "__fish_bowline_using_subcommand latch; and not __fish_seen_subcommand_from set count-down wait show delete help" -l password-file -d 'A file whose only line is the password. The environment variable BOWLINE_PASSWORD is the password itself' -r
complete -c bowline -n "__fish_bowline_using_subcommand latch; and not __fish_seen_subcommand_from set count-down wait show delete help" -l cacert -d 'The certificates of the authorities to trust, in PEM, instead of those of the system' -r
complete -c bowline -n "__fish_bowline_using_subcommand latch; and not __fish_seen_subcommand_from set count-down wait show delete help" -l cert -d 'The client\'s own certificate, in PEM' -r
complete -c bowline -n "__fish_bowline_using_subcommand latch; and not __fish_seen_subcommand_from set count-down wait show delete help" -l key -d 'The key of the client\'s own certificate, in PEM' -r
complete -c bowline -n "__fish_bowline_using_subcommand latch; and not __fish_seen_subcommand_from set count-down wait show delete help" -l prefix -d 'The start of all keys. Programs with another prefix do not see these locks. The default is bowline' -r
complete -c bowline -n "__fish_bowline_using_subcommand latch; and not __fish_seen_subcommand_from set count-down wait show delete help" -s h -l help -d 'Print help'
complete -c bowline -n "__fish_bowline_using_subcommand latch; and not __fish_seen_subcommand_from set count-down wait show delete help" -f -a "set" -d 'Makes a latch with this count. Exits with 1 if there is one that is not at zero'
complete -c bowline -n "__fish_bowline_using_subcommand latch; and not __fish_seen_subcommand_from set count-down wait show delete help" -f -a "count-down" -d 'Counts down by one, and prints what is left'
complete -c bowline -n "__fish_bowline_using_subcommand latch; and not __fish_seen_subcommand_from set count-down wait show delete help" -f -a "wait" -d 'Waits until the count is zero. Exits with 0 at once if there is no latch, with 1 if the time is over before, and with 125 if the latch ends before it is counted down'
complete -c bowline -n "__fish_bowline_using_subcommand latch; and not __fish_seen_subcommand_from set count-down wait show delete help" -f -a "show" -d 'Shows the count, and who waits. Exits with 1 if there is no latch'
complete -c bowline -n "__fish_bowline_using_subcommand latch; and not __fish_seen_subcommand_from set count-down wait show delete help" -f -a "delete" -d 'Ends a latch. Its waiters fail. Exits with 1 if there is none'
complete -c bowline -n "__fish_bowline_using_subcommand latch; and not __fish_seen_subcommand_from set count-down wait show delete help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c bowline -n "__fish_bowline_using_subcommand latch; and __fish_seen_subcommand_from set" -l ttl -d 'How long the latch lives' -r
complete -c bowline -n "__fish_bowline_using_subcommand latch; and __fish_seen_subcommand_from set" -l url -d 'The servers: redis://host/, rediss:// for TLS, unix://, redis-sentinel://host,host/?master=name, redis-cluster://host,host. A password in an argument is visible to other users of this machine: use --password-file or the environment' -r
complete -c bowline -n "__fish_bowline_using_subcommand latch; and __fish_seen_subcommand_from set" -l config -d 'A file in TOML with url, username, password_file and so on, and prefix, command_timeout, retry_timeout' -r -F
complete -c bowline -n "__fish_bowline_using_subcommand latch; and __fish_seen_subcommand_from set" -l username -d 'The user on the servers' -r
complete -c bowline -n "__fish_bowline_using_subcommand latch; and __fish_seen_subcommand_from set" -l password-file -d 'A file whose only line is the password. The environment variable BOWLINE_PASSWORD is the password itself' -r
complete -c bowline -n "__fish_bowline_using_subcommand latch; and __fish_seen_subcommand_from set" -l cacert -d 'The certificates of the authorities to trust, in PEM, instead of those of the system' -r
complete -c bowline -n "__fish_bowline_using_subcommand latch; and __fish_seen_subcommand_from set" -l cert -d 'The client\'s own certificate, in PEM' -r
complete -c bowline -n "__fish_bowline_using_subcommand latch; and __fish_seen_subcommand_from set" -l key -d 'The key of the client\'s own certificate, in PEM' -r
complete -c bowline -n "__fish_bowline_using_subcommand latch; and __fish_seen_subcommand_from set" -l prefix -d 'The start of all keys. Programs with another prefix do not see these locks. The default is bowline' -r
complete -c bowline -n "__fish_bowline_using_subcommand latch; and __fish_seen_subcommand_from set" -s h -l help -d 'Print help'
complete -c bowline -n "__fish_bowline_using_subcommand latch; and __fish_seen_subcommand_from count-down" -l url -d 'The servers: redis://host/, rediss:// for TLS, unix://, redis-sentinel://host,host/?master=name, redis-cluster://host,host. A password in an argument is visible to other users of this machine: use --password-file or the environment' -r
complete -c bowline -n "__fish_bowline_using_subcommand latch; and __fish_seen_subcommand_from count-down" -l config -d 'A file in TOML with url, username, password_file and so on, and prefix, command_timeout, retry_timeout' -r -F
complete -c bowline -n "__fish_bowline_using_subcommand latch; and __fish_seen_subcommand_from count-down" -l username -d 'The user on the servers' -r
complete -c bowline -n "__fish_bowline_using_subcommand latch; and __fish_seen_subcommand_from count-down" -l password-file -d 'A file whose only line is the password. The environment variable BOWLINE_PASSWORD is the password itself' -r
complete -c bowline -n "__fish_bowline_using_subcommand latch; and __fish_seen_subcommand_from count-down" -l cacert -d 'The certificates of the authorities to trust, in PEM, instead of those of the system' -r
complete -c bowline -n "__fish_bowline_using_subcommand latch; and __fish_seen_subcommand_from count-down" -l cert -d 'The client\'s own certificate, in PEM' -r
complete -c bowline -n "__fish_bowline_using_subcommand latch; and __fish_seen_subcommand_from count-down" -l key -d 'The key of the client\'s own certificate, in PEM' -r
complete -c bowline -n "__fish_bowline_using_subcommand latch; and __fish_seen_subcommand_from count-down" -l prefix -d 'The start of all keys. Programs with another prefix do not see these locks. The default is bowline' -r
complete -c bowline -n "__fish_bowline_using_subcommand latch; and __fish_seen_subcommand_from count-down" -s h -l help -d 'Print help'
complete -c bowline -n "__fish_bowline_using_subcommand latch; and __fish_seen_subcommand_from wait" -l timeout -r
complete -c bowline -n "__fish_bowline_using_subcommand latch; and __fish_seen_subcommand_from wait" -l url -d 'The servers: redis://host/, rediss:// for TLS, unix://, redis-sentinel://host,host/?master=name, redis-cluster://host,host. A password in an argument is visible to other users of this machine: use --password-file or the environment' -r
complete -c bowline -n "__fish_bowline_using_subcommand latch; and __fish_seen_subcommand_from wait" -l config -d 'A file in TOML with url, username, password_file and so on, and prefix, command_timeout, retry_timeout' -r -F
complete -c bowline -n "__fish_bowline_using_subcommand latch; and __fish_seen_subcommand_from wait" -l username -d 'The user on the servers' -r
complete -c bowline -n "__fish_bowline_using_subcommand latch; and __fish_seen_subcommand_from wait" -l password-file -d 'A file whose only line is the password. The environment variable BOWLINE_PASSWORD is the password itself' -r
complete -c bowline -n "__fish_bowline_using_subcommand latch; and __fish_seen_subcommand_from wait" -l cacert -d 'The certificates of the authorities to trust, in PEM, instead of those of the system' -r
complete -c bowline -n "__fish_bowline_using_subcommand latch; and __fish_seen_subcommand_from wait" -l cert -d 'The client\'s own certificate, in PEM' -r
complete -c bowline -n "__fish_bowline_using_subcommand latch; and __fish_seen_subcommand_from wait" -l key -d 'The key of the client\'s own certificate, in PEM' -r
complete -c bowline -n "__fish_bowline_using_subcommand latch; and __fish_seen_subcommand_from wait" -l prefix -d 'The start of all keys. Programs with another prefix do not see these locks. The default is bowline' -r
complete -c bowline -n "__fish_bowline_using_subcommand latch; and __fish_seen_subcommand_from wait" -s h -l help -d 'Print help'
complete -c bowline -n "__fish_bowline_using_subcommand latch; and __fish_seen_subcommand_from show" -l url -d 'The servers: redis://host/, rediss:// for TLS, unix://, redis-sentinel://host,host/?master=name, redis-cluster://host,host. A password in an argument is visible to other users of this machine: use --password-file or the environment' -r
complete -c bowline -n "__fish_bowline_using_subcommand latch; and __fish_seen_subcommand_from show" -l config -d 'A file in TOML with url, username, password_file and so on, and prefix, command_timeout, retry_timeout' -r -F
complete -c bowline -n "__fish_bowline_using_subcommand latch; and __fish_seen_subcommand_from show" -l username -d 'The user on the servers' -r
complete -c bowline -n "__fish_bowline_using_subcommand latch; and __fish_seen_subcommand_from show" -l password-file -d 'A file whose only line is the password. The environment variable BOWLINE_PASSWORD is the password itself' -r
complete -c bowline -n "__fish_bowline_using_subcommand latch; and __fish_seen_subcommand_from show" -l cacert -d 'The certificates of the authorities to trust, in PEM, instead of those of the system' -r
complete -c bowline -n "__fish_bowline_using_subcommand latch; and __fish_seen_subcommand_from show" -l cert -d 'The client\'s own certificate, in PEM' -r
complete -c bowline -n "__fish_bowline_using_subcommand latch; and __fish_seen_subcommand_from show" -l key -d 'The key of the client\'s own certificate, in PEM' -r
complete -c bowline -n "__fish_bowline_using_subcommand latch; and __fish_seen_subcommand_from show" -l prefix -d 'The start of all keys. Programs with another prefix do not see these locks. The default is bowline' -r
complete -c bowline -n "__fish_bowline_using_subcommand latch; and __fish_seen_subcommand_from show" -l json -d 'Writes JSON, one document. Times are in milliseconds'
complete -c bowline -n "__fish_bowline_using_subcommand latch; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help'
complete -c bowline -n "__fish_bowline_using_subcommand latch; and __fish_seen_subcommand_from delete" -l url -d 'The servers: redis://host/, rediss:// for TLS, unix://, redis-sentinel://host,host/?master=name, redis-cluster://host,host. A password in an argument is visible to other users of this machine: use --password-file or the environment' -r
complete -c bowline -n "__fish_bowline_using_subcommand latch; and __fish_seen_subcommand_from delete" -l config -d 'A file in TOML with url, username, password_file and so on, and prefix, command_timeout, retry_timeout' -r -F
complete -c bowline -n "__fish_bowline_using_subcommand latch; and __fish_seen_subcommand_from delete" -l username -d 'The user on the servers' -r
complete -c bowline -n "__fish_bowline_using_subcommand latch; and __fish_seen_subcommand_from delete" -l password-file -d 'A file whose only line is the password. The environment variable BOWLINE_PASSWORD is the password itself' -r
complete -c bowline -n "__fish_bowline_using_subcommand latch; and __fish_seen_subcommand_from delete" -l cacert -d 'The certificates of the authorities to trust, in PEM, instead of those of the system' -r
complete -c bowline -n "__fish_bowline_using_subcommand latch; and __fish_seen_subcommand_from delete" -l cert -d 'The client\'s own certificate, in PEM' -r
complete -c bowline -n "__fish_bowline_using_subcommand latch; and __fish_seen_subcommand_from delete" -l key -d 'The key of the client\'s own certificate, in PEM' -r
complete -c bowline -n "__fish_bowline_using_subcommand latch; and __fish_seen_subcommand_from delete" -l prefix -d 'The start of all keys. Programs with another prefix do not see these locks. The default is bowline' -r
complete -c bowline -n "__fish_bowline_using_subcommand latch; and __fish_seen_subcommand_from delete" -s h -l help -d 'Print help'
complete -c bowline -n "__fish_bowline_using_subcommand latch; and __fish_seen_subcommand_from help" -f -a "set" -d 'Makes a latch with this count. Exits with 1 if there is one that is not at zero'
complete -c bowline -n "__fish_bowline_using_subcommand latch; and __fish_seen_subcommand_from help" -f -a "count-down" -d 'Counts down by one, and prints what is left'
complete -c bowline -n "__fish_bowline_using_subcommand latch; and __fish_seen_subcommand_from help" -f -a "wait" -d 'Waits until the count is zero. Exits with 0 at once if there is no latch, with 1 if the time is over before, and with 125 if the latch ends before it is counted down'
complete -c bowline -n "__fish_bowline_using_subcommand latch; and __fish_seen_subcommand_from help" -f -a "show" -d 'Shows the count, and who waits. Exits with 1 if there is no latch'
complete -c bowline -n "__fish_bowline_using_subcommand latch; and __fish_seen_subcommand_from help" -f -a "delete" -d 'Ends a latch. Its waiters fail. Exits with 1 if there is none'
complete -c bowline -n "__fish_bowline_using_subcommand latch; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c bowline -n "__fish_bowline_using_subcommand ping" -l url -d 'The servers: redis://host/, rediss:// for TLS, unix://, redis-sentinel://host,host/?master=name, redis-cluster://host,host. A password in an argument is visible to other users of this machine: use --password-file or the environment' -r
complete -c bowline -n "__fish_bowline_using_subcommand ping" -l config -d 'A file in TOML with url, username, password_file and so on, and prefix, command_timeout, retry_timeout' -r -F
complete -c bowline -n "__fish_bowline_using_subcommand ping" -l username -d 'The user on the servers' -r
complete -c bowline -n "__fish_bowline_using_subcommand ping" -l password-file -d 'A file whose only line is the password. The environment variable BOWLINE_PASSWORD is the password itself' -r
complete -c bowline -n "__fish_bowline_using_subcommand ping" -l cacert -d 'The certificates of the authorities to trust, in PEM, instead of those of the system' -r
complete -c bowline -n "__fish_bowline_using_subcommand ping" -l cert -d 'The client\'s own certificate, in PEM' -r
complete -c bowline -n "__fish_bowline_using_subcommand ping" -l key -d 'The key of the client\'s own certificate, in PEM' -r
complete -c bowline -n "__fish_bowline_using_subcommand ping" -l prefix -d 'The start of all keys. Programs with another prefix do not see these locks. The default is bowline' -r
complete -c bowline -n "__fish_bowline_using_subcommand ping" -l json -d 'Writes JSON, one document. Times are in milliseconds'
complete -c bowline -n "__fish_bowline_using_subcommand ping" -s h -l help -d 'Print help'
complete -c bowline -n "__fish_bowline_using_subcommand doctor" -l lease -d 'The shortest lease in use, which a failover should not outlast: 100 ms to 24 h. Of use in a cluster only' -r
complete -c bowline -n "__fish_bowline_using_subcommand doctor" -l accept -d 'Accepts what this check finds: replicas, persistence and so on. May be given several times' -r -f -a "connect\t''
rights\t''
reachable\t''
version\t''
role\t''
eviction\t''
memory\t''
persistence\t''
replicas\t''
min-replicas\t''
read-only\t''
messages\t''
user\t''
failover\t''
coverage\t''
clock\t''"
complete -c bowline -n "__fish_bowline_using_subcommand doctor" -l watch -d 'How long to watch the servers\' clocks for steps' -r
complete -c bowline -n "__fish_bowline_using_subcommand doctor" -l url -d 'The servers: redis://host/, rediss:// for TLS, unix://, redis-sentinel://host,host/?master=name, redis-cluster://host,host. A password in an argument is visible to other users of this machine: use --password-file or the environment' -r
complete -c bowline -n "__fish_bowline_using_subcommand doctor" -l config -d 'A file in TOML with url, username, password_file and so on, and prefix, command_timeout, retry_timeout' -r -F
complete -c bowline -n "__fish_bowline_using_subcommand doctor" -l username -d 'The user on the servers' -r
complete -c bowline -n "__fish_bowline_using_subcommand doctor" -l password-file -d 'A file whose only line is the password. The environment variable BOWLINE_PASSWORD is the password itself' -r
complete -c bowline -n "__fish_bowline_using_subcommand doctor" -l cacert -d 'The certificates of the authorities to trust, in PEM, instead of those of the system' -r
complete -c bowline -n "__fish_bowline_using_subcommand doctor" -l cert -d 'The client\'s own certificate, in PEM' -r
complete -c bowline -n "__fish_bowline_using_subcommand doctor" -l key -d 'The key of the client\'s own certificate, in PEM' -r
complete -c bowline -n "__fish_bowline_using_subcommand doctor" -l prefix -d 'The start of all keys. Programs with another prefix do not see these locks. The default is bowline' -r
complete -c bowline -n "__fish_bowline_using_subcommand doctor" -l json -d 'Writes JSON, one document. Times are in milliseconds'
complete -c bowline -n "__fish_bowline_using_subcommand doctor" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c bowline -n "__fish_bowline_using_subcommand top" -l kind -d 'Only this kind' -r -f -a "lock\t''
rw\t''
semaphore\t''
latch\t''
barrier\t''
double-barrier\t''
once\t''
election\t''
rate\t''
redlock\t''"
complete -c bowline -n "__fish_bowline_using_subcommand top" -l every -d 'The pause between two questions to the servers: at least 100 ms' -r
complete -c bowline -n "__fish_bowline_using_subcommand top" -l url -d 'The servers: redis://host/, rediss:// for TLS, unix://, redis-sentinel://host,host/?master=name, redis-cluster://host,host. A password in an argument is visible to other users of this machine: use --password-file or the environment' -r
complete -c bowline -n "__fish_bowline_using_subcommand top" -l config -d 'A file in TOML with url, username, password_file and so on, and prefix, command_timeout, retry_timeout' -r -F
complete -c bowline -n "__fish_bowline_using_subcommand top" -l username -d 'The user on the servers' -r
complete -c bowline -n "__fish_bowline_using_subcommand top" -l password-file -d 'A file whose only line is the password. The environment variable BOWLINE_PASSWORD is the password itself' -r
complete -c bowline -n "__fish_bowline_using_subcommand top" -l cacert -d 'The certificates of the authorities to trust, in PEM, instead of those of the system' -r
complete -c bowline -n "__fish_bowline_using_subcommand top" -l cert -d 'The client\'s own certificate, in PEM' -r
complete -c bowline -n "__fish_bowline_using_subcommand top" -l key -d 'The key of the client\'s own certificate, in PEM' -r
complete -c bowline -n "__fish_bowline_using_subcommand top" -l prefix -d 'The start of all keys. Programs with another prefix do not see these locks. The default is bowline' -r
complete -c bowline -n "__fish_bowline_using_subcommand top" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c bowline -n "__fish_bowline_using_subcommand completions" -l url -d 'The servers: redis://host/, rediss:// for TLS, unix://, redis-sentinel://host,host/?master=name, redis-cluster://host,host. A password in an argument is visible to other users of this machine: use --password-file or the environment' -r
complete -c bowline -n "__fish_bowline_using_subcommand completions" -l config -d 'A file in TOML with url, username, password_file and so on, and prefix, command_timeout, retry_timeout' -r -F
complete -c bowline -n "__fish_bowline_using_subcommand completions" -l username -d 'The user on the servers' -r
complete -c bowline -n "__fish_bowline_using_subcommand completions" -l password-file -d 'A file whose only line is the password. The environment variable BOWLINE_PASSWORD is the password itself' -r
complete -c bowline -n "__fish_bowline_using_subcommand completions" -l cacert -d 'The certificates of the authorities to trust, in PEM, instead of those of the system' -r
complete -c bowline -n "__fish_bowline_using_subcommand completions" -l cert -d 'The client\'s own certificate, in PEM' -r
complete -c bowline -n "__fish_bowline_using_subcommand completions" -l key -d 'The key of the client\'s own certificate, in PEM' -r
complete -c bowline -n "__fish_bowline_using_subcommand completions" -l prefix -d 'The start of all keys. Programs with another prefix do not see these locks. The default is bowline' -r
complete -c bowline -n "__fish_bowline_using_subcommand completions" -s h -l help -d 'Print help'
complete -c bowline -n "__fish_bowline_using_subcommand generate" -l url -d 'The servers: redis://host/, rediss:// for TLS, unix://, redis-sentinel://host,host/?master=name, redis-cluster://host,host. A password in an argument is visible to other users of this machine: use --password-file or the environment' -r
complete -c bowline -n "__fish_bowline_using_subcommand generate" -l config -d 'A file in TOML with url, username, password_file and so on, and prefix, command_timeout, retry_timeout' -r -F
complete -c bowline -n "__fish_bowline_using_subcommand generate" -l username -d 'The user on the servers' -r
complete -c bowline -n "__fish_bowline_using_subcommand generate" -l password-file -d 'A file whose only line is the password. The environment variable BOWLINE_PASSWORD is the password itself' -r
complete -c bowline -n "__fish_bowline_using_subcommand generate" -l cacert -d 'The certificates of the authorities to trust, in PEM, instead of those of the system' -r
complete -c bowline -n "__fish_bowline_using_subcommand generate" -l cert -d 'The client\'s own certificate, in PEM' -r
complete -c bowline -n "__fish_bowline_using_subcommand generate" -l key -d 'The key of the client\'s own certificate, in PEM' -r
complete -c bowline -n "__fish_bowline_using_subcommand generate" -l prefix -d 'The start of all keys. Programs with another prefix do not see these locks. The default is bowline' -r
complete -c bowline -n "__fish_bowline_using_subcommand generate" -s h -l help -d 'Print help'
complete -c bowline -n "__fish_bowline_using_subcommand help; and not __fish_seen_subcommand_from run inspect watch ls release deadlocks leader latch ping doctor top completions generate help" -f -a "run" -d 'Runs a command while it holds a lock'
complete -c bowline -n "__fish_bowline_using_subcommand help; and not __fish_seen_subcommand_from run inspect watch ls release deadlocks leader latch ping doctor top completions generate help" -f -a "inspect" -d 'Shows who holds a name and who waits for it. Exits with 1 if the name is not in use'
complete -c bowline -n "__fish_bowline_using_subcommand help; and not __fish_seen_subcommand_from run inspect watch ls release deadlocks leader latch ping doctor top completions generate help" -f -a "watch" -d 'Shows who gets a name and who loses it, as it happens, until it is stopped. The user needs the right +client|tracking'
complete -c bowline -n "__fish_bowline_using_subcommand help; and not __fish_seen_subcommand_from run inspect watch ls release deadlocks leader latch ping doctor top completions generate help" -f -a "ls" -d 'Lists the names that are in use. The user needs the rights +scan and +info'
complete -c bowline -n "__fish_bowline_using_subcommand help; and not __fish_seen_subcommand_from run inspect watch ls release deadlocks leader latch ping doctor top completions generate help" -f -a "release" -d 'Takes a lock, its readers and writer, or permits from the holders, at most 1,000 holds a call. The holders are told, and may act until then. Exits with 1 if nothing is held'
complete -c bowline -n "__fish_bowline_using_subcommand help; and not __fish_seen_subcommand_from run inspect watch ls release deadlocks leader latch ping doctor top completions generate help" -f -a "deadlocks" -d 'Finds clients that wait for each other. Exits with 1 if there are any'
complete -c bowline -n "__fish_bowline_using_subcommand help; and not __fish_seen_subcommand_from run inspect watch ls release deadlocks leader latch ping doctor top completions generate help" -f -a "leader" -d 'Shows who leads in an election. Exits with 1 if nobody leads'
complete -c bowline -n "__fish_bowline_using_subcommand help; and not __fish_seen_subcommand_from run inspect watch ls release deadlocks leader latch ping doctor top completions generate help" -f -a "latch" -d 'Sets, counts down, waits for and shows latches'
complete -c bowline -n "__fish_bowline_using_subcommand help; and not __fish_seen_subcommand_from run inspect watch ls release deadlocks leader latch ping doctor top completions generate help" -f -a "ping" -d 'Asks the servers who they are, and tells what bowline would warn of. Exits with 1 if one does not answer'
complete -c bowline -n "__fish_bowline_using_subcommand help; and not __fish_seen_subcommand_from run inspect watch ls release deadlocks leader latch ping doctor top completions generate help" -f -a "doctor" -d 'Checks the servers against docs/deployments.md of bowline, with one verdict a line'
complete -c bowline -n "__fish_bowline_using_subcommand help; and not __fish_seen_subcommand_from run inspect watch ls release deadlocks leader latch ping doctor top completions generate help" -f -a "top" -d 'Shows the names in use in a table that follows them'
complete -c bowline -n "__fish_bowline_using_subcommand help; and not __fish_seen_subcommand_from run inspect watch ls release deadlocks leader latch ping doctor top completions generate help" -f -a "completions" -d 'Writes the completions for a shell'
complete -c bowline -n "__fish_bowline_using_subcommand help; and not __fish_seen_subcommand_from run inspect watch ls release deadlocks leader latch ping doctor top completions generate help" -f -a "generate" -d 'Writes the man pages and all completions into a folder, for packages'
complete -c bowline -n "__fish_bowline_using_subcommand help; and not __fish_seen_subcommand_from run inspect watch ls release deadlocks leader latch ping doctor top completions generate help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c bowline -n "__fish_bowline_using_subcommand help; and __fish_seen_subcommand_from latch" -f -a "set" -d 'Makes a latch with this count. Exits with 1 if there is one that is not at zero'
complete -c bowline -n "__fish_bowline_using_subcommand help; and __fish_seen_subcommand_from latch" -f -a "count-down" -d 'Counts down by one, and prints what is left'
complete -c bowline -n "__fish_bowline_using_subcommand help; and __fish_seen_subcommand_from latch" -f -a "wait" -d 'Waits until the count is zero. Exits with 0 at once if there is no latch, with 1 if the time is over before, and with 125 if the latch ends before it is counted down'
complete -c bowline -n "__fish_bowline_using_subcommand help; and __fish_seen_subcommand_from latch" -f -a "show" -d 'Shows the count, and who waits. Exits with 1 if there is no latch'
complete -c bowline -n "__fish_bowline_using_subcommand help; and __fish_seen_subcommand_from latch" -f -a "delete" -d 'Ends a latch. Its waiters fail. Exits with 1 if there is none'
