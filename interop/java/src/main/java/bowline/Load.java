package bowline;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.redisson.api.RBucket;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;

/** What uses a lock many times. */
final class Load {
    private Load() {}

    /**
     * Adds one to a counter, once per round, by a GET and a SET under the lock: two holders at once lose an addition. Returns the
     * rounds that were done.
     */
    static String contend(RedissonClient client, RLock lock, long rounds, String key, long lease) {
        RBucket<String> counter = client.getBucket(key, StringCodec.INSTANCE);
        for (long round = 0; round < rounds; round++) {
            lock.lock(lease, MILLISECONDS);
            try {
                String value = counter.get();
                counter.set(String.valueOf(value == null ? 1 : Long.parseLong(value) + 1));
            } finally {
                lock.unlock();
            }
        }
        return String.valueOf(rounds);
    }

    /** Returns the nanoseconds of all pairs together. */
    static String pairs(RLock lock, long count) {
        long start = System.nanoTime();
        for (long pair = 0; pair < count; pair++) {
            lock.lock();
            lock.unlock();
        }
        return String.valueOf(System.nanoTime() - start);
    }

    /**
     * Threads of their own compete for the lock. Returns the acquisitions of all, and how many of them came after one of another
     * thread.
     */
    static String handOvers(RLock lock, int threads, long milliseconds) throws InterruptedException {
        long until = System.nanoTime() + MILLISECONDS.toNanos(milliseconds);
        AtomicInteger last = new AtomicInteger(-1);
        AtomicLong acquisitions = new AtomicLong();
        AtomicLong handOvers = new AtomicLong();
        List<Thread> running = new ArrayList<>();
        for (int number = 0; number < threads; number++) {
            int own = number;
            Thread thread = new Thread(() -> {
                while (System.nanoTime() < until) {
                    lock.lock();
                    acquisitions.incrementAndGet();
                    if (last.getAndSet(own) != own) {
                        handOvers.incrementAndGet();
                    }
                    lock.unlock();
                }
            });
            thread.start();
            running.add(thread);
        }
        for (Thread thread : running) {
            thread.join();
        }
        return acquisitions + " " + handOvers;
    }
}
