package peer;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** R1-R10 of the compliance pack, by type. */
final class Rules {
  private record Rule(String superseding, String superseded, List<String> scopeKeys) {}

  private static final List<String> POLICY = List.of();
  private static final List<String> EMPLOYEE = List.of("employee");
  private static final List<String> SECURITY = List.of("employee", "ticker");

  private static final List<Rule> RULES = List.of(
      new Rule("blackout_announced", "pre_clearance_approved", SECURITY),
      new Rule("blackout_lifted", "blackout_announced", SECURITY),
      new Rule("emergency_exception", "blackout_announced", SECURITY),
      new Rule("exception_revoked", "emergency_exception", SECURITY),
      new Rule("watchlist_added", "pre_clearance_approved", SECURITY),
      new Rule("watchlist_removed", "watchlist_added", SECURITY),
      new Rule("conflict_amended", "conflict_disclosed", EMPLOYEE),
      new Rule("conflict_cleared", "conflict_amended", EMPLOYEE),
      new Rule("conflict_cleared", "conflict_disclosed", EMPLOYEE),
      new Rule("policy_update", "policy_acknowledged", POLICY));

  private static final Map<String, List<String>> SCOPE_KEYS = new HashMap<>();
  private static final Map<String, List<String>> SUPERSEDED = new HashMap<>();
  private static final Map<String, List<String>> SUPERSEDING = new HashMap<>();

  static {
    for (Rule rule : RULES) {
      SCOPE_KEYS.put(rule.superseding, rule.scopeKeys);
      SCOPE_KEYS.put(rule.superseded, rule.scopeKeys);
      SUPERSEDED.computeIfAbsent(rule.superseding, type -> new ArrayList<>()).add(rule.superseded);
      SUPERSEDING.computeIfAbsent(rule.superseded, type -> new ArrayList<>()).add(rule.superseding);
    }
  }

  private Rules() {}

  /** The keys of the scope of a type, or null if no rule names the type. No keys: one scope for everyone. */
  static List<String> scopeKeys(String type) {
    return SCOPE_KEYS.get(type);
  }

  static List<String> supersededBy(String type) {
    return SUPERSEDED.getOrDefault(type, List.of());
  }

  static List<String> supersedingOf(String type) {
    return SUPERSEDING.getOrDefault(type, List.of());
  }
}
