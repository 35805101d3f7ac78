import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.io.DecoderFactory;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * Holds the tokens of one collection as a marketplace would: bootstraps from public.metadata.token.state.v1, follows it, and drops
 * what is not newer. Prints what it holds for each line on its standard input; ends with it. Kafka's client and Avro alone: the
 * framing is a zero byte and the schema's id, and the registry answers over HTTP.
 */
public final class Follow {
  private static final ObjectMapper json = new ObjectMapper();
  private final HttpClient http = HttpClient.newHttpClient();
  private final Map<Integer, GenericDatumReader<GenericRecord>> readers = new HashMap<>();
  private final Map<String, Map<String, Object>> tokens = new LinkedHashMap<>();
  private final Map<String, String> options;
  private final KafkaConsumer<String, byte[]> consumer;
  private final List<TopicPartition> partitions;
  private long discarded;

  public static void main(String[] arguments) throws Exception {
    Map<String, String> options = new HashMap<>();
    for (int index = 0; index + 1 < arguments.length; index += 2) options.put(arguments[index].substring(2), arguments[index + 1]);
    new Follow(options).run();
  }

  private Follow(Map<String, String> options) {
    this.options = options;
    // Partitions are assigned by hand and nothing is committed: the topic is the storage, and every start reads all of it.
    consumer =
        new KafkaConsumer<>(
            Map.of(
                ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, options.get("brokers"),
                ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, false),
            new StringDeserializer(),
            new ByteArrayDeserializer());
    partitions =
        consumer.partitionsFor(options.get("topic")).stream()
            .map(partition -> new TopicPartition(partition.topic(), partition.partition()))
            .toList();
  }

  private void run() throws Exception {
    consumer.assign(partitions);
    consumer.seekToBeginning(partitions);
    BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
    while (true) {
      readSome();
      if (!input.ready()) continue;
      String line = input.readLine();
      if (line == null || line.equals("end")) break;
      readToTheEnd();
      System.out.println(json.writeValueAsString(Map.of("tokens", tokens.values(), "discarded", discarded)));
    }
    consumer.close();
  }

  private void readToTheEnd() throws Exception {
    Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
    while (ends.entrySet().stream().anyMatch(end -> consumer.position(end.getKey()) < end.getValue())) readSome();
  }

  private void readSome() throws Exception {
    for (ConsumerRecord<String, byte[]> record : consumer.poll(Duration.ofMillis(100))) {
      try {
        apply(decode(record.value()));
      } catch (Exception problem) {
        byte[] value = record.value();
        Object schemaId = value != null && value.length >= 5 ? ByteBuffer.wrap(value).getInt(1) : "none";
        throw new IllegalStateException(
            record.topic() + ", partition " + record.partition() + ", offset " + record.offset() + ", schema " + schemaId, problem);
      }
    }
  }

  private void apply(GenericRecord state) {
    if (!state.get("collection_address").toString().equals(options.get("collection"))) return;
    String tokenId = state.get("token_id").toString();
    long version = (Long) state.get("version");
    Map<String, Object> held = tokens.get(tokenId);
    // Redelivered, or older than what is held: a version is never used for two contents.
    if (held != null && version <= (Long) held.get("version")) {
      discarded += 1;
      return;
    }
    tokens.put(
        tokenId,
        Map.of(
            "token_id", tokenId,
            "version", version,
            "content_hash", state.get("content_hash").toString(),
            "metadata", state.get("metadata").toString()));
  }

  private GenericRecord decode(byte[] value) throws Exception {
    ByteBuffer framed = ByteBuffer.wrap(value);
    if (framed.get() != 0) throw new IllegalStateException("no schema id: the first byte is not 0");
    GenericDatumReader<GenericRecord> reader = readerOf(framed.getInt());
    return reader.read(null, DecoderFactory.get().binaryDecoder(value, framed.position(), framed.remaining(), null));
  }

  private GenericDatumReader<GenericRecord> readerOf(int schemaId) throws Exception {
    GenericDatumReader<GenericRecord> known = readers.get(schemaId);
    if (known != null) return known;
    HttpRequest request = HttpRequest.newBuilder(URI.create(options.get("registry") + "/schemas/ids/" + schemaId)).build();
    HttpResponse<String> answer = http.send(request, HttpResponse.BodyHandlers.ofString());
    if (answer.statusCode() != 200) throw new IllegalStateException("the registry answered " + answer.statusCode());
    Schema schema = new Schema.Parser().parse(json.readTree(answer.body()).get("schema").asText());
    GenericDatumReader<GenericRecord> reader = new GenericDatumReader<>(schema);
    readers.put(schemaId, reader);
    return reader;
  }
}
