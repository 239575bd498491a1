package org.thalweg;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/** Loads the library: from the jar, which holds it with its plugins, or else from the path of the system's loader. */
final class Natives {
    private Natives() {}

    private static final String FOLDER = "/org/thalweg/natives/";

    static void load() {
        try (InputStream list = Natives.class.getResourceAsStream(FOLDER + "files.txt")) {
            if (list == null) {
                System.loadLibrary("thalweg_java");
                return;
            }
            System.load(extract(list).resolve("libthalweg_java.so").toString());
        } catch (IOException e) {
            throw new UnsatisfiedLinkError("the native library cannot be taken out of the jar: " + e);
        }
    }

    /** Writes the files into a folder of their own, which ends with the process. */
    private static Path extract(InputStream list) throws IOException {
        Path folder = Files.createTempDirectory("thalweg-java");
        List<Path> written = new ArrayList<>(List.of(folder));
        try (BufferedReader names = new BufferedReader(new InputStreamReader(list, StandardCharsets.UTF_8))) {
            for (String name; (name = names.readLine()) != null;) {
                Path file = folder.resolve(name);
                for (Path parent = file.getParent(); !written.contains(parent); parent = parent.getParent()) written.add(1, parent);
                Files.createDirectories(file.getParent());
                try (InputStream bytes = Natives.class.getResourceAsStream(FOLDER + name)) {
                    if (bytes == null) throw new IOException("the jar lacks " + name);
                    Files.copy(bytes, file);
                }
                if (!file.toFile().setExecutable(true)) throw new IOException("cannot make " + file + " executable");
                written.add(file);
            }
        }
        Collections.reverse(written);
        written.sort((a, b) -> b.getNameCount() - a.getNameCount()); // what is inside first
        Runtime.getRuntime().addShutdownHook(new Thread(() -> written.forEach(path -> path.toFile().delete())));
        return folder;
    }
}
