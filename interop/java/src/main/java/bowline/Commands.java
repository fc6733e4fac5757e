package bowline;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import java.util.List;
import org.redisson.api.RCountDownLatch;
import org.redisson.api.RFencedLock;
import org.redisson.api.RLock;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RSemaphore;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;

/** What the commands mean: {@code <kind> <operation> <name> <arguments>}, in the thread of the worker. Times are milliseconds. */
final class Commands {
    /** As an argument: the watchdog renews it, or it never expires. */
    private static final long NO_LEASE = -1;

    private final RedissonClient client;

    Commands(RedissonClient client) {
        this.client = client;
    }

    /** Returns the value, "" for none. */
    String execute(List<String> words) throws InterruptedException {
        String kind = words.get(0);
        if (kind.equals("owner")) {
            return client.getId() + ":" + Thread.currentThread().getId();
        }
        if (kind.equals("sleep")) {
            Thread.sleep(Long.parseLong(words.get(1)));
            return "";
        }
        if (words.size() < 3) {
            throw new IllegalArgumentException("a command about a " + kind + " has an operation and a name");
        }
        String operation = words.get(1);
        String name = words.get(2);
        Arguments rest = new Arguments(words.subList(3, words.size()));
        return switch (kind) {
            case "lock" -> lock(client.getLock(name), operation, rest);
            case "fenced" -> fenced(client.getFencedLock(name), operation, rest);
            case "read" -> lock(client.getReadWriteLock(name).readLock(), operation, rest);
            case "write" -> lock(client.getReadWriteLock(name).writeLock(), operation, rest);
            case "semaphore" -> semaphore(client.getSemaphore(name), operation, rest);
            case "permits" -> permits(client.getPermitExpirableSemaphore(name), operation, rest);
            case "latch" -> latch(client.getCountDownLatch(name), operation, rest);
            case "text" -> text(name, operation, rest);
            default -> throw new IllegalArgumentException("no such kind: " + kind);
        };
    }

    private String lock(RLock lock, String operation, Arguments rest) throws InterruptedException {
        switch (operation) {
            case "lock" -> lock.lock(rest.number(NO_LEASE), MILLISECONDS);
            case "tryLock" -> {
                // Without a time to wait it does not subscribe, as most callers of tryLock do it.
                return String.valueOf(rest.isEmpty() ? lock.tryLock()
                        : lock.tryLock(rest.number(0), rest.number(NO_LEASE), MILLISECONDS));
            }
            case "lockAsync" -> lock.lockAsync(rest.number(NO_LEASE), MILLISECONDS, Thread.currentThread().getId())
                    .toCompletableFuture().join();
            case "unlock" -> lock.unlock();
            case "forceUnlock" -> {
                return String.valueOf(lock.forceUnlock());
            }
            case "isLocked" -> {
                return String.valueOf(lock.isLocked());
            }
            case "isHeldByThread" -> {
                return String.valueOf(lock.isHeldByCurrentThread());
            }
            case "holdCount" -> {
                return String.valueOf(lock.getHoldCount());
            }
            case "remainTimeToLive" -> {
                return String.valueOf(lock.remainTimeToLive());
            }
            case "contend" -> {
                return Load.contend(client, lock, rest.number(), rest.word(), rest.number(NO_LEASE));
            }
            case "pairs" -> {
                return Load.pairs(lock, rest.number());
            }
            case "handOvers" -> {
                return Load.handOvers(lock, (int) rest.number(), rest.number());
            }
            default -> throw unknown(operation);
        }
        return "";
    }

    private String fenced(RFencedLock lock, String operation, Arguments rest) throws InterruptedException {
        return switch (operation) {
            case "getToken" -> String.valueOf(lock.getToken());
            case "lockAndGetToken" -> String.valueOf(
                    // With a lease, Redisson 4.7.0 ignores it: see the README.
                    rest.isEmpty() ? lock.lockAndGetToken() : lock.lockAndGetToken(rest.number(), MILLISECONDS));
            case "tryLockAndGetToken" -> String.valueOf(rest.isEmpty() ? lock.tryLockAndGetToken()
                    : lock.tryLockAndGetToken(rest.number(), rest.number(NO_LEASE), MILLISECONDS));
            default -> lock(lock, operation, rest);
        };
    }

    private String semaphore(RSemaphore semaphore, String operation, Arguments rest) throws InterruptedException {
        switch (operation) {
            case "trySetPermits" -> {
                return String.valueOf(semaphore.trySetPermits((int) rest.number()));
            }
            case "addPermits" -> semaphore.addPermits((int) rest.number());
            case "acquire" -> semaphore.acquire((int) rest.number(1));
            case "tryAcquire" -> {
                int permits = (int) rest.number(1);
                return String.valueOf(rest.isEmpty() ? semaphore.tryAcquire(permits)
                        : semaphore.tryAcquire(permits, rest.number(), MILLISECONDS));
            }
            case "release" -> semaphore.release((int) rest.number(1));
            case "availablePermits" -> {
                return String.valueOf(semaphore.availablePermits());
            }
            case "drainPermits" -> {
                return String.valueOf(semaphore.drainPermits());
            }
            case "delete" -> {
                return String.valueOf(semaphore.delete());
            }
            default -> throw unknown(operation);
        }
        return "";
    }

    private String permits(RPermitExpirableSemaphore semaphore, String operation, Arguments rest)
            throws InterruptedException {
        switch (operation) {
            case "trySetPermits" -> {
                return String.valueOf(semaphore.trySetPermits((int) rest.number()));
            }
            case "setPermits" -> semaphore.setPermits((int) rest.number());
            case "addPermits" -> semaphore.addPermits((int) rest.number());
            case "acquire" -> {
                return semaphore.acquire(rest.number(NO_LEASE), MILLISECONDS);
            }
            case "tryAcquire" -> {
                return String.valueOf(rest.isEmpty() ? semaphore.tryAcquire()
                        : semaphore.tryAcquire(rest.number(), rest.number(NO_LEASE), MILLISECONDS));
            }
            case "release" -> semaphore.release(rest.word());
            case "tryRelease" -> {
                return String.valueOf(semaphore.tryRelease(rest.word()));
            }
            case "updateLeaseTime" -> {
                return String.valueOf(semaphore.updateLeaseTime(rest.word(), rest.number(), MILLISECONDS));
            }
            case "getLeaseTime" -> {
                return String.valueOf(semaphore.getLeaseTime(rest.word()));
            }
            case "availablePermits" -> {
                return String.valueOf(semaphore.availablePermits());
            }
            case "acquiredPermits" -> {
                return String.valueOf(semaphore.acquiredPermits());
            }
            case "delete" -> {
                return String.valueOf(semaphore.delete());
            }
            default -> throw unknown(operation);
        }
        return "";
    }

    private String latch(RCountDownLatch latch, String operation, Arguments rest) throws InterruptedException {
        switch (operation) {
            case "trySetCount" -> {
                return String.valueOf(latch.trySetCount(rest.number()));
            }
            case "countDown" -> latch.countDown();
            case "await" -> {
                if (!rest.isEmpty()) {
                    return String.valueOf(latch.await(rest.number(), MILLISECONDS));
                }
                latch.await();
            }
            case "getCount" -> {
                return String.valueOf(latch.getCount());
            }
            case "delete" -> {
                return String.valueOf(latch.delete());
            }
            default -> throw unknown(operation);
        }
        return "";
    }

    /** Plain strings, to look at what the locks protect. */
    private String text(String name, String operation, Arguments rest) {
        switch (operation) {
            case "get" -> {
                return String.valueOf((String) client.<String>getBucket(name, StringCodec.INSTANCE).get());
            }
            case "set" -> client.<String>getBucket(name, StringCodec.INSTANCE).set(rest.word());
            default -> throw unknown(operation);
        }
        return "";
    }

    private static IllegalArgumentException unknown(String operation) {
        return new IllegalArgumentException("no such operation: " + operation);
    }

    /** The words of a command that are left. */
    private static final class Arguments {
        private final List<String> words;
        private int next;

        Arguments(List<String> words) {
            this.words = words;
        }

        boolean isEmpty() {
            return next == words.size();
        }

        String word() {
            if (isEmpty()) {
                throw new IllegalArgumentException("an argument is missing");
            }
            return words.get(next++);
        }

        long number() {
            return Long.parseLong(word());
        }

        long number(long otherwise) {
            return isEmpty() ? otherwise : number();
        }
    }
}
