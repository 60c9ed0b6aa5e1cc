package s3compactor;

import java.io.ByteArrayOutputStream;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.util.Arrays;
import java.util.Iterator;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * Creates each version of a Delta log by one PUT with If-None-Match.
 *
 * <p>Janino compiles it, which infers no type arguments: so types are raw, and casts are written.
 */
public class ConditionalLogStore extends io.delta.storage.S3SingleDriverLogStore {
    // S3A refuses it before Hadoop 3.4.2.
    private static final String CONDITIONAL = "fs.option.create.conditional.overwrite";

    public ConditionalLogStore(Configuration configuration) {
        super(configuration);
    }

    /**
     * Writes a file of the log.
     *
     * @throws FileAlreadyExistsException the version is somebody else's; Delta takes the next one.
     * @throws IOException it is not stored, or S3 does not tell.
     */
    public void write(Path path, Iterator actions, Boolean overwrite, Configuration configuration)
            throws IOException {
        if (overwrite.booleanValue()) {
            // Such as _last_checkpoint, a hint.
            super.write(path, actions, overwrite, configuration);
            return;
        }
        FileSystem files = path.getFileSystem(configuration);
        byte[] body = joined(actions);
        try {
            create(files, path, body);
        } catch (IOException error) {
            // A PUT whose answer was lost is sent again, and then finds itself.
            byte[] found = stored(files, path);
            if (found == null) {
                throw error;
            }
            if (!Arrays.equals(found, body)) {
                throw new FileAlreadyExistsException(path.toString());
            }
        }
    }

    private static void create(FileSystem files, Path path, byte[] body) throws IOException {
        FSDataOutputStreamBuilder builder = files.createFile(path);
        builder.overwrite(false);
        builder.must(CONDITIONAL, "true");
        FSDataOutputStream stream = (FSDataOutputStream) builder.build();
        boolean whole = false;
        try {
            stream.write(body);
            whole = true;
        } finally {
            if (!whole) {
                // Closing would store the half.
                stream.abort();
            }
        }
        stream.close();
    }

    private static byte[] joined(Iterator lines) throws IOException {
        ByteArrayOutputStream joined = new ByteArrayOutputStream();
        while (lines.hasNext()) {
            joined.write(((String) lines.next()).getBytes(StandardCharsets.UTF_8));
            joined.write('\n');
        }
        return joined.toByteArray();
    }

    private static byte[] stored(FileSystem files, Path path) throws IOException {
        FSDataInputStream stream;
        try {
            stream = files.open(path);
        } catch (FileNotFoundException error) {
            return null;
        }
        try {
            return stream.readAllBytes();
        } finally {
            stream.close();
        }
    }
}
