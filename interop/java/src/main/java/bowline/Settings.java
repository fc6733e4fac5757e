package bowline;

import org.redisson.config.BaseConfig;
import org.redisson.config.Config;
import org.redisson.config.BaseMasterSlaveServersConfig;
import org.redisson.config.ConstantDelay;
import org.redisson.config.NameMapper;
import java.time.Duration;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;

/** The arguments of the program, as the settings of a client. What they leave out has the default of Redisson. */
final class Settings {
    private Settings() {}

    static Config parse(String[] args) {
        Map<String, String> given = new HashMap<>();
        for (String arg : args) {
            int at = arg.indexOf('=');
            if (at < 0) {
                throw new IllegalArgumentException("not <name>=<value>: " + arg);
            }
            given.put(arg.substring(0, at), arg.substring(at + 1));
        }
        Config config = new Config();
        String mode = take(given, "mode", "single");
        String[] addresses = take(given, "addresses", "redis://127.0.0.1:6379").split(",");
        switch (mode) {
            case "single" -> small(config.useSingleServer().setAddress(addresses[0])
                    .setConnectionMinimumIdleSize(1).setSubscriptionConnectionMinimumIdleSize(1), given);
            case "sentinel" -> small(several(config.useSentinelServers()
                    .setMasterName(take(given, "master", "mymaster")).addSentinelAddress(addresses)), given);
            case "cluster" -> small(several(config.useClusterServers()
                    .setScanInterval(Integer.parseInt(take(given, "scan", "1000"))).addNodeAddress(addresses)), given);
            default -> throw new IllegalArgumentException("no such mode: " + mode);
        }
        if (given.containsKey("watchdog")) {
            config.setLockWatchdogTimeout(Long.parseLong(given.remove("watchdog")));
        }
        if (given.containsKey("password")) {
            config.setPassword(given.remove("password"));
        }
        if (given.containsKey("prefix")) {
            config.setNameMapper(new Prefix(given.remove("prefix")));
        }
        if (given.containsKey("synced")) {
            config.setCheckLockSyncedSlaves(Boolean.parseBoolean(given.remove("synced")));
        }
        if (!given.isEmpty()) {
            throw new IllegalArgumentException("no such settings: " + Arrays.toString(given.keySet().toArray()));
        }
        return config;
    }

    private static String take(Map<String, String> given, String name, String otherwise) {
        String value = given.remove(name);
        return value == null ? otherwise : value;
    }

    /** Fewer connections than by default: a test starts many such programs. */
    private static <T extends BaseMasterSlaveServersConfig<T>> T several(T config) {
        config.setMasterConnectionMinimumIdleSize(1).setSlaveConnectionMinimumIdleSize(1)
                .setSubscriptionConnectionMinimumIdleSize(1);
        return config;
    }

    private static <T extends BaseConfig<T>> void small(T config, Map<String, String> given) {
        if (given.containsKey("timeout")) {
            config.setTimeout(Integer.parseInt(given.remove("timeout")));
        }
        if (given.containsKey("retries")) {
            config.setRetryAttempts(Integer.parseInt(given.remove("retries")));
        }
        if (given.containsKey("retry")) {
            config.setRetryDelay(new ConstantDelay(Duration.ofMillis(Long.parseLong(given.remove("retry")))));
        }
    }

    private record Prefix(String prefix) implements NameMapper {
        @Override
        public String map(String name) {
            return prefix + name;
        }

        @Override
        public String unmap(String name) {
            return name.substring(prefix.length());
        }
    }
}
