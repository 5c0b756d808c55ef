package peer;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;

/**
 * The second hop: the active documents of each scope, and every change of them.
 *
 * <p>The store has a row per scope, with the latest time of each type, and a row per active document, so that a scope
 * that everyone shares is not one long value.
 */
final class Frontier implements Processor<String, String, String, String> {
  static final String SCOPES = "scopes";
  private static final int LATEST_BYTES = 64; // at most, for one type

  private ProcessorContext<String, String> context;
  private KeyValueStore<String, byte[]> scopes;

  @Override
  public void init(ProcessorContext<String, String> context) {
    this.context = context;
    this.scopes = context.getStateStore(SCOPES);
  }

  @Override
  public void process(Record<String, String> record) {
    String scope = record.key();
    Placement placed = Placement.decode(record.value());
    Map<String, Long> latest = decodeLatest(scopes.get(scope));
    boolean isActive = Rules.supersedingOf(placed.type()).stream()
        .noneMatch(type -> latest.getOrDefault(type, Long.MIN_VALUE) > placed.time());
    if (latest.getOrDefault(placed.type(), Long.MIN_VALUE) < placed.time()) {
      latest.put(placed.type(), placed.time());
      scopes.put(scope, encodeLatest(latest));
      for (String type : Rules.supersededBy(placed.type())) {
        supersede(scope, type, placed, record.timestamp());
      }
    }
    if (isActive) {
      byte[] time = ByteBuffer.allocate(Long.BYTES).putLong(placed.time()).array();
      scopes.put(rows(scope, placed.type()) + placed.id(), time);
      forward(scope, "{\"entered\":\"" + placed.id() + "\"}", record.timestamp());
    }
  }

  /** Remove the active documents of a type that are older than a document that supersedes them. */
  private void supersede(String scope, String type, Placement later, long timestamp) {
    String first = rows(scope, type);
    List<String> superseded = new ArrayList<>();
    try (KeyValueIterator<String, byte[]> active = scopes.range(first, first + '\uffff')) {
      active.forEachRemaining(row -> {
        if (ByteBuffer.wrap(row.value).getLong() < later.time()) {
          superseded.add(row.key);
        }
      });
    }
    for (String row : superseded) {
      scopes.delete(row);
      String change = "{\"left\":\"" + row.substring(first.length()) + "\",\"by\":\"" + later.id() + "\"}";
      forward(scope, change, timestamp);
    }
  }

  private void forward(String scope, String change, long timestamp) {
    context.forward(new Record<>(scope, change, timestamp));
  }

  private static String rows(String scope, String type) {
    return scope + '\0' + type + '\0';
  }

  private static Map<String, Long> decodeLatest(byte[] row) {
    Map<String, Long> latest = new HashMap<>();
    if (row != null) {
      ByteBuffer bytes = ByteBuffer.wrap(row);
      while (bytes.hasRemaining()) {
        byte[] type = new byte[bytes.get()];
        bytes.get(type);
        latest.put(new String(type, StandardCharsets.US_ASCII), bytes.getLong());
      }
    }
    return latest;
  }

  private static byte[] encodeLatest(Map<String, Long> latest) {
    ByteBuffer bytes = ByteBuffer.allocate(latest.size() * LATEST_BYTES);
    latest.forEach((type, time) -> {
      byte[] name = type.getBytes(StandardCharsets.US_ASCII);
      bytes.put((byte) name.length).put(name).putLong(time);
    });
    byte[] row = new byte[bytes.position()];
    bytes.flip().get(row);
    return row;
  }
}
