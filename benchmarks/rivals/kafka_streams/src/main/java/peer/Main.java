package peer;

import java.util.Properties;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.StoreBuilder;
import org.apache.kafka.streams.state.Stores;

/** Runs both hops until it is terminated, with Kafka Streams' own defaults except for what is an argument. */
public final class Main {
  private Main() {}

  /** Arguments: address, name of the application, topics to read, to pass on and to write, guarantee, folder, threads. */
  public static void main(String[] args) {
    Properties settings = new Properties();
    settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, args[0]);
    settings.put(StreamsConfig.APPLICATION_ID_CONFIG, args[1]);
    settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, args[5]);
    settings.put(StreamsConfig.STATE_DIR_CONFIG, args[6]);
    settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, Integer.parseInt(args[7]));
    settings.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, 1);
    settings.put("auto.offset.reset", "earliest");
    KafkaStreams streams = new KafkaStreams(topology(args[2], args[3], args[4]), settings);
    streams.setStateListener((state, former) -> System.out.println("STATE " + state));
    Runtime.getRuntime().addShutdownHook(new Thread(streams::close));
    streams.start();
  }

  private static Topology topology(String documents, String placements, String changes) {
    Topology topology = new Topology();
    topology.addSource("documents", new StringDeserializer(), new ByteArrayDeserializer(), documents);
    topology.addProcessor("intake", Intake::new, "documents");
    topology.addStateStore(store(Intake.REVISIONS).withCachingEnabled(), "intake");
    topology.addSink("place", placements, new StringSerializer(), new StringSerializer(), "intake");
    topology.addSource("placements", new StringDeserializer(), new StringDeserializer(), placements);
    topology.addProcessor("frontier", Frontier::new, "placements");
    topology.addStateStore(store(Frontier.SCOPES), "frontier");
    topology.addSink("changes", changes, new StringSerializer(), new StringSerializer(), "frontier");
    return topology;
  }

  private static StoreBuilder<KeyValueStore<String, byte[]>> store(String name) {
    return Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore(name), Serdes.String(), Serdes.ByteArray());
  }
}
