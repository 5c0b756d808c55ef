package peer;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.time.Instant;
import java.util.List;
import java.util.StringJoiner;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;

/** The first hop: drop repeats by id and revision, and send the document to its scope. */
final class Intake implements Processor<String, byte[], String, String> {
  static final String REVISIONS = "revisions";
  private static final ObjectMapper JSON = new ObjectMapper();

  private ProcessorContext<String, String> context;
  private KeyValueStore<String, byte[]> revisions;

  @Override
  public void init(ProcessorContext<String, String> context) {
    this.context = context;
    this.revisions = context.getStateStore(REVISIONS);
  }

  @Override
  public void process(Record<String, byte[]> record) {
    JsonNode document = parse(record.value());
    String id = document.get("id").asText();
    String type = document.get("type").asText();
    if (isRepeat(id, document.path("revision").asInt(1))) {
      return;
    }
    List<String> keys = Rules.scopeKeys(type);
    if (keys != null) {
      Instant time = Instant.parse(document.get("time").asText());
      long micros = time.getEpochSecond() * 1_000_000 + time.getNano() / 1000;
      String placement = new Placement(micros, type, id).encode();
      context.forward(new Record<>(scope(keys, document.path("scope").path(0)), placement, record.timestamp()));
    }
  }

  private boolean isRepeat(String id, int revision) {
    byte[] known = revisions.get(id);
    if (known != null && ByteBuffer.wrap(known).getInt() >= revision) {
      return true;
    }
    revisions.put(id, ByteBuffer.allocate(Integer.BYTES).putInt(revision).array());
    return false;
  }

  private static String scope(List<String> keys, JsonNode values) {
    if (keys.isEmpty()) {
      return "policy=*";
    }
    StringJoiner name = new StringJoiner(", ");
    for (String key : keys) {
      String value = values.get(key).get(0).asText();
      name.add(key + "=" + (key.equals("ticker") ? value.toUpperCase() : value));
    }
    return name.toString();
  }

  private static JsonNode parse(byte[] value) {
    try {
      return JSON.readTree(value);
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }
}
