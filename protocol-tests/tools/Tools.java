import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.Collectors;
import java.util.stream.Stream;

import org.apache.kafka.common.utils.internals.Exit;

/**
 * Runs Kafka's command line tools one after the other in one JVM, for a JVM's start costs more than most tools.
 *
 * A line of standard input is one run: the words seconds, class, standard input and arguments, each in base64 between
 * spaces. The answer is a line with the exit code (-1: not done after that many seconds), standard output and standard
 * error, in base64 too. A tool that wants to end the process ends only itself; its shutdown hooks are run after it.
 */
public final class Tools {
    private static final PrintStream ANSWERS = System.out;

    /** Loads the tools' classes anew for each run, for some keep counters in static fields. */
    private static final class Fresh extends ClassLoader {
        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            if (!name.startsWith("org.apache.kafka.tools."))
                return super.loadClass(name, resolve);
            Class<?> loaded = findLoadedClass(name);
            return loaded != null ? loaded : define(name);
        }

        private Class<?> define(String name) throws ClassNotFoundException {
            try (InputStream file = getResourceAsStream(name.replace('.', '/') + ".class")) {
                if (file == null)
                    throw new ClassNotFoundException(name);
                byte[] bytes = file.readAllBytes();
                return defineClass(name, bytes, 0, bytes.length);
            } catch (IOException unread) {
                throw new ClassNotFoundException(name, unread);
            }
        }
    }

    public static void main(String[] none) throws Exception {
        BufferedReader runs = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line = runs.readLine(); line != null; line = runs.readLine()) {
            List<String> words = Stream.of(line.split(" ", -1)).map(Tools::decode).collect(Collectors.toList());
            ANSWERS.println(run(words));
            ANSWERS.flush();
        }
        System.exit(0);
    }

    private static String run(List<String> words) throws Exception {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        ByteArrayOutputStream err = new ByteArrayOutputStream();
        System.setIn(new ByteArrayInputStream(words.get(2).getBytes(StandardCharsets.UTF_8)));
        System.setOut(new PrintStream(out, true));
        System.setErr(new PrintStream(err, true));
        int code = runWithin(Integer.parseInt(words.get(0)), words.get(1), words.subList(3, words.size()));
        System.out.flush();
        System.err.flush();
        return encode(Integer.toString(code)) + " " + encode(out.toString("UTF-8")) + " " + encode(err.toString("UTF-8"));
    }

    private static int runWithin(int seconds, String tool, List<String> arguments) throws Exception {
        List<Runnable> hooks = new ArrayList<>();
        CompletableFuture<Integer> code = new CompletableFuture<>();
        // Like a real exit this does not come back, or tools that catch everything would go on.
        Exit.Procedure exit = (status, message) -> {
            code.complete(status);
            new CompletableFuture<Void>().join();
        };
        Exit.setExitProcedure(exit);
        Exit.setHaltProcedure(exit);
        Exit.setShutdownHookAdder((name, hook) -> hooks.add(hook));
        Thread thread = new Thread(() -> code.complete(call(tool, arguments.toArray(new String[0]))), "tool");
        thread.setDaemon(true);
        thread.start();
        try {
            return code.get(seconds, TimeUnit.SECONDS);
        } catch (TimeoutException late) {
            return -1;
        } finally {
            hooks.forEach(Runnable::run);
        }
    }

    private static int call(String tool, String[] arguments) {
        try {
            ClassLoader fresh = new Fresh();
            Thread.currentThread().setContextClassLoader(fresh);
            Class.forName(tool, true, fresh).getMethod("main", String[].class).invoke(null, (Object) arguments);
            return 0;
        } catch (InvocationTargetException thrown) {
            // What a JVM does of an exception that leaves main.
            System.err.print("Exception in thread \"main\" ");
            thrown.getCause().printStackTrace();
            return 1;
        } catch (ReflectiveOperationException absent) {
            throw new IllegalArgumentException("no tool " + tool, absent);
        }
    }

    private static String decode(String word) {
        return new String(Base64.getDecoder().decode(word), StandardCharsets.UTF_8);
    }

    private static String encode(String text) {
        return Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_8));
    }
}
