package peer;

/** A document in its scope: what goes from the first hop to the second, as text. */
record Placement(long time, String type, String id) {
  String encode() {
    return time + "|" + type + "|" + id;
  }

  static Placement decode(String text) {
    int first = text.indexOf('|');
    int second = text.indexOf('|', first + 1);
    return new Placement(
        Long.parseLong(text.substring(0, first)), text.substring(first + 1, second), text.substring(second + 1));
  }
}
