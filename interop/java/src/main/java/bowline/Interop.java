package bowline;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.client.RedisException;

/**
 * A client of Redisson that does what its standard input says.
 *
 * <p>The README of {@code interop} describes the arguments and the commands. The owner of a Redisson lock is a thread, so each
 * command names the worker that executes it: a thread of that name, which executes its commands one after the other. Commands of
 * different workers run at the same time.
 */
public final class Interop {
    private final PrintStream answers;
    private final RedissonClient client;
    private final Commands commands;
    /** Only the thread that reads the commands uses it. */
    private final Map<String, ExecutorService> workers = new HashMap<>();

    private Interop(PrintStream answers, RedissonClient client) {
        this.answers = answers;
        this.client = client;
        this.commands = new Commands(client);
    }

    public static void main(String[] args) throws IOException {
        PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        // Whatever else is printed must not look like an answer.
        System.setOut(System.err);
        RedissonClient client = Redisson.create(Settings.parse(args));
        answers.println("ready " + client.getId());
        new Interop(answers, client).serve();
        // Threads that wait for a lock would keep the program alive.
        Runtime.getRuntime().halt(0);
    }

    private void serve() throws IOException {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            if (line.isBlank()) {
                continue;
            }
            List<String> words = Arrays.asList(line.strip().split("\\s+"));
            String id = words.get(0);
            if (words.size() < 3) {
                answers.println(id + " error IllegalArgumentException a command has an id, a worker and a verb");
                continue;
            }
            if (words.get(2).equals("quit")) {
                client.shutdown();
                answers.println(id + " ok");
                return;
            }
            worker(words.get(1)).execute(() -> answer(id, words.subList(2, words.size())));
        }
    }

    private ExecutorService worker(String name) {
        return workers.computeIfAbsent(
                name, unused -> Executors.newSingleThreadExecutor(task -> new Thread(task, name)));
    }

    private void answer(String id, List<String> command) {
        String answer;
        try {
            String value = commands.execute(command);
            answer = value.isEmpty() ? "ok" : "ok " + value;
        } catch (Throwable thrown) {
            Throwable cause = thrown;
            while (wraps(cause) && cause.getCause() != null) {
                cause = cause.getCause();
            }
            String message = String.valueOf(cause.getMessage()).replaceAll("\\s+", " ");
            answer = "error " + cause.getClass().getSimpleName() + " " + message;
        }
        // One call, so that answers of several workers do not mix.
        answers.println(id + " " + answer);
    }

    /** Redisson wraps some of its exceptions in a plain RedisException. */
    private static boolean wraps(Throwable thrown) {
        return thrown instanceof CompletionException
                || thrown instanceof ExecutionException
                || thrown.getClass() == RedisException.class;
    }
}
