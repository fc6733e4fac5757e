package bowline;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Scanner;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/**
 * Locks of Redisson, with its defaults, driven by the bench over standard input and output.
 *
 * <p>Arguments: the server's address, {@code lock} or {@code fair}, and the lock's name. The program prints {@code ready}
 * and then answers each line that it reads:
 *
 * <ul>
 *   <li>{@code pairs <n>}: acquires and releases the lock n times. The answer has the nanoseconds of each pair.
 *   <li>{@code turn <threads> <milliseconds>}: the threads compete for the lock all the time. The answer has a line with the
 *       acquisitions of each thread, a line with the number of hand-overs, and a line with the nanoseconds of the waits.
 *   <li>{@code connect <n>}: n times, a new client takes the lock. The answer has the nanoseconds from nothing to each grant.
 *   <li>{@code hold <n>}: takes n locks, whose names begin with that of the lock, and keeps them. The answer is {@code held}.
 * </ul>
 *
 * <p>The program ends when its input ends, even in the middle of an answer.
 */
public final class Peer {
    /** Waits that a thread keeps in one turn. Later ones are only counted. */
    private static final int MOST_WAITS = 10_000;

    private final String address;
    private final RedissonClient client;
    private final RLock lock;
    private final ExecutorService pool = Executors.newCachedThreadPool();

    private Peer(String address, String kind, String name) {
        this.address = address;
        this.client = connect(address);
        this.lock = kind.equals("fair") ? client.getFairLock(name) : client.getLock(name);
    }

    private static RedissonClient connect(String address) {
        Config config = new Config();
        config.useSingleServer().setAddress(address);
        return Redisson.create(config);
    }

    public static void main(String[] args) {
        Peer peer = new Peer(args[0], args[1], args[2]);
        ExecutorService worker = Executors.newSingleThreadExecutor();
        System.out.println("ready");
        Scanner input = new Scanner(System.in);
        // The answers come from another thread, so that this one sees the end of the input.
        while (input.hasNextLine()) {
            String[] words = input.nextLine().split(" ");
            worker.execute(() -> peer.answer(words));
        }
        Runtime.getRuntime().halt(0);
    }

    private void answer(String[] words) {
        try {
            String answer = switch (words[0]) {
                case "pairs" -> pairs(Integer.parseInt(words[1]));
                case "turn" -> turn(Integer.parseInt(words[1]), Long.parseLong(words[2]));
                case "connect" -> connects(Integer.parseInt(words[1]));
                case "hold" -> holds(Integer.parseInt(words[1]));
                default -> throw new IllegalArgumentException(words[0]);
            };
            System.out.println(answer);
        } catch (Throwable error) {
            error.printStackTrace();
            Runtime.getRuntime().halt(1);
        }
    }

    private String pairs(int count) {
        long[] times = new long[count];
        for (int pair = 0; pair < count; pair++) {
            long start = System.nanoTime();
            lock.lock();
            lock.unlock();
            times[pair] = System.nanoTime() - start;
        }
        return words(times);
    }

    private String connects(int count) {
        long[] times = new long[count];
        for (int number = 0; number < count; number++) {
            long start = System.nanoTime();
            RedissonClient another = connect(address);
            RLock own = another.getLock(lock.getName());
            own.lock();
            times[number] = System.nanoTime() - start;
            own.unlock();
            another.shutdown();
        }
        return words(times);
    }

    private String holds(int count) {
        for (int number = 0; number < count; number++) {
            client.getLock(lock.getName() + ":" + number).lock();
        }
        return "held";
    }

    private String turn(int threads, long milliseconds) throws Exception {
        long until = System.nanoTime() + milliseconds * 1_000_000;
        AtomicInteger last = new AtomicInteger(-1);
        AtomicLong handOvers = new AtomicLong();
        List<Future<Waits>> running = new ArrayList<>();
        for (int number = 0; number < threads; number++) {
            int thread = number;
            running.add(pool.submit(() -> repeat(until, thread, last, handOvers)));
        }
        long[] counts = new long[threads];
        StringBuilder waits = new StringBuilder();
        for (int thread = 0; thread < threads; thread++) {
            Waits done = running.get(thread).get();
            counts[thread] = done.count;
            waits.append(words(done.kept()));
        }
        return words(counts) + "\n" + handOvers + "\n" + waits;
    }

    /** The last acquisition may end after the time is over. It counts too, as it does for the other peers. */
    private Waits repeat(long until, int thread, AtomicInteger last, AtomicLong handOvers) {
        Waits waits = new Waits();
        while (System.nanoTime() < until) {
            long start = System.nanoTime();
            lock.lock();
            long waited = System.nanoTime() - start;
            if (last.getAndSet(thread) != thread) {
                handOvers.incrementAndGet();
            }
            lock.unlock();
            waits.add(waited);
        }
        return waits;
    }

    private static String words(long[] values) {
        StringBuilder text = new StringBuilder();
        for (long value : values) {
            text.append(value).append(' ');
        }
        return text.toString();
    }

    /** The waits of one thread in one turn. */
    private static final class Waits {
        private long[] nanoseconds = new long[64];
        private int count;

        void add(long wait) {
            if (count == nanoseconds.length && count < MOST_WAITS) {
                nanoseconds = Arrays.copyOf(nanoseconds, Math.min(2 * count, MOST_WAITS));
            }
            if (count < nanoseconds.length) {
                nanoseconds[count] = wait;
            }
            count++;
        }

        long[] kept() {
            return Arrays.copyOf(nanoseconds, Math.min(count, nanoseconds.length));
        }
    }
}
