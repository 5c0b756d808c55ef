"""The words and patterns of the frames in which `frames` finds facts."""

import re

SENTENCE_END = re.compile(
    r"(?<!\b[A-Z])(?<!\bInc)(?<!\bJr)(?<!\bSr)(?<!\bSt)(?<!\bDr)(?<!\bMr)(?<!\bMrs)(?<!\bCo)(?<!\bMs)(?<!\bProf)(?<!\be\.g)(?<!\bi\.e)(?<!\bvs)(?<!\bNo)(?<!\bVol)"
    r"\.\s+(?=[A-Z\"'`(])|(?<=[!?])\s+(?=[A-Z\"'`(])|\n+"
)
LEAD = re.compile(
    r"(?:(?:fyi|so|well|ok|okay|actually|correction|update|updated|note|reminder|heads[ -]up|by the way|btw|sorry|oh|"
    r"and|wait|hi|hey|hello|no|yes|please note|for the record|just so you know|quick update|scratch that|remember|"
    r"(?:that|this|it)(?: has|'s)? changed|change of plans?|good news|(?:it )?turns out)"
    r"\b(?: that\b)?[\s,:;.!–—-]+)+",
    re.IGNORECASE,
)
NOW = re.compile(
    r",?\s*\b(?:now|nowadays|recently|lately|"
    r"currently|presently|at present|officially|these days|at the moment|right now|"
    r"from (?:here|now) on|as of \w+day|from \w+day on|starting \w+day|going forward|"
    r"as of (?:today|now)|starting (?:today|now)|since (?:today|yesterday|\w+day)|"
    r"instead(?! of)|effective immediately|again|still|already|just)\b(?!\s+that)",
    re.IGNORECASE,
)
IN_DOUBT = re.compile(
    r"\b(?:would|could|might|may|should|maybe|perhaps|probably|possibly|likely|plan(?:s|ned|ning)? (?:to|on)|will|"
    r"going to|about to|consider(?:s|ing|ed)?|think(?:s|ing)?|thought|guess|propos(?:e|es|ed|al)|suggest(?:s|ed)?|"
    r"want(?:s|ed)? to|hop(?:e|es|ing)|wish(?:es)?|if|unless|whether|"
    r"not sure|unsure|unclear|tbd|to be decided|"
    r"tentative|draft|used to|formerly|previous(?:ly)?|former|(?<!years )old|ago|yesterday|no longer|"
    r"until(?! \d{1,2}(?::\d\d|\b))|till|was|were|had|"
    r"ran|did|except|sometimes|usually|often|rumou?r|allegedly|say|says|heard|pretend|for example|"
    r"imagine|suppose|let's|"
    r"(?:in|until|by|before|during|around) (?:19|20)\d\d|"
    r"also|as well|too|additionally|in addition|besides|another|either|alternatively|or|other)\b"
    r"|\blast (?:week|month|year|quarter|time)\b|\bnext (?:week|month|year|quarter)\b"
)
PAST = re.compile(r"(?P<np>my .+?) was (?P<v>.+)", re.IGNORECASE)  # before now: it displaces nothing newer
OPAQUE = re.compile(r"\S*[@/_.]\S*\w(?: says)?")  # words in addresses and names of code mean nothing
REASON = re.compile(r"(?P<why>.+?)(?:, so (?!(?:that|far|much|many|long)\b)|,? so (?=(?:the|my|our|[A-Z][a-z]+)\b))")
AS_BEFORE = re.compile(r",[^,;]* (?:(?:stays?|remains?)(?: [^,;]*)?|as before|as usual|unchanged)$")
SCOPED_FIRST = re.compile(
    r"^(?P<at>In|Inside|Within|At|On|For|Under|When|Whenever|While|Once|During|After)"
    r" (?P<place>[^,]{1,60}), (?P<rest>.+)$"
)
SLOT = re.compile(
    r"\b(?:header|parameter|field|channel|queue|topic|bucket|branch|region|cluster|column|cookie|claim|level|mode|tier|plan|"
    r"profile|locale|encoding|format|engine|driver|variable|type|class|table|zone|schema|namespace|package|module|template|"
    r"role|group|tag|label|image|database|host|node|pool)(?: named| called)?"
    r" (?P<v>['\"A-Z][^ ]*\w['\"]?|[a-z]+(?:[-_][a-z0-9]+)+(?=$))"
    r"|\bthe (?P<w>['\"]?[A-Z][\w-]*['\"]?) (?:header|parameter|field|channel|queue|topic|bucket|branch|region|"
    r"cookie)\b(?! ['\"A-Z])"
)
NEGATION = re.compile(r"\b(?:not|never|without)\b|n't\b", re.IGNORECASE)
VERBS = (
    "is are equals has uses runs listens expires takes starts opens closes ends costs holds requires allows sets pins "
    "depends returns answers responds sends sits lives reads writes filters paginates points defaults serves exposes "
    "binds stores keeps retains rotates retries caps connects weighs lasts meets begins pays "
    "charges ships deploys targets logs polls fires mounts resolves redirects routes forwards accepts needs lies stays "
    "stands amounts measures covers limits refreshes waits stops times falls happens occurs counts belongs goes speaks "
    "reports signs authenticates sorts groups encodes compresses backs syncs rolls seats serves fits reaches talks "
    "comes travels declares specifies locks wants builds compiles emits publishes consumes subscribes parses renews"
)
THIRD_PERSON = frozenset(VERBS.split())
PLURAL = frozenset({"are", "have"} | {verb.removesuffix("s") for verb in THIRD_PERSON - {"is", "has", "goes"}} | {"go"})
_ADDING = "includes contains supports lists covers likes loves knows works plays leaves arrives departs depends stops"
ADDING = frozenset(_ADDING.split())  # verbs of what can be several
WE_USE = re.compile(
    r"(?:we|i) (?:use|run|have|are using|am using) "
    r"(?P<v>[^ ]+(?: [A-Z0-9][^ ]*)*) (?:for|as) (?P<np>(?:the|our|my) .+)",
    re.IGNORECASE,
)
COPULA = re.compile(
    r"(?P<np>.+?)(?: is| are| equals| stands at| runs at| stays at| sits at| becomes| became| will be| =|:)"
    r"(?: set| fixed| scheduled| due| planned| named| called| kept| held)?"
    r"(?: (?:to|at|on(?! in | for |$)|in|by|for(?: the)?))? (?P<v>.+)"
)
REVERSED = re.compile(
    r"(?P<v>[A-Z\d][^,;:]*?) (?:is|are|=)(?: the| our)? (?P<np>(?:(?<=the |our )|(?=my ))(?!.*(?: and |,)).+)"
)
HAVE = "(?:'ve| have)?"
FIRST_PERSON = [
    (relation, re.compile(form.replace("{v}", "(?P<v>.+)").replace("{am}", "I(?:'m| am)")))
    for relation, form in (
        ("home", "I live (?:in|at) {v}"),
        ("home", "{am} (?:living|based) (?:in|at) {v}"),
        ("home", f"I{HAVE} (?:moved|relocated) to {{v}}"),
        ("employer", "(?:I work|{am} working) (?:at|for) {v}"),
        ("employer", f"I{HAVE} (?:joined|started(?: working)? (?:at|for)) {{v}}"),
        ("timezone", "{am} (?:in|on) (?:the )?(?P<v>[A-Z][A-Z0-9+-]{1,5}) ?(?:time ?zone|time)"),
        ("employer", f"I{HAVE} (?:started|begun) (?:a|my) new job (?:at|with) {{v}}"),
        ("diet", "{am} (?:a )?(?P<v>vegan|vegetarian|pescatarian)"),
        ("age", "{am} (?P<v>\\d{1,3})(?: years old)?"),
        ("name", "(?:call me|{am} called|{am} named|I go by) {v}"),
    )
]
ROLES = {
    "owner": "owns|owned", "reviewer": "reviews|reviewed",
    "lead": "leads|led|heads|headed", "manager": "manages|managed",
    "maintainer": "maintains|maintained", "operator": "watches|watched|monitors|monitored", "chair": "chairs|chaired",
    "host": "hosts|hosted", "approver": "approves|approved", "organizer": "organizes|organized|organises|organised",
    "responsible": "handles|handled|runs|is responsible for|is in charge of|takes care of|looks after|covers",
}  # fmt: skip
WHO = r"(?P<who>[A-Z][\w'-]+(?: [A-Z][\w'-]+)*|My \w+|my \w+|[Tt]he [\w-]+(?: [\w-]+)? team)"
EXCLUSIVE = ("owner", "lead", "chair", "manager")
BARE = r"[a-z]+(?: [a-z]+)?|"
ROLE = [
    (role, re.compile(form))
    for role, verbs in ROLES.items()
    for form in (
        rf"{WHO} (?:{verbs}) (?P<np>{BARE if role in EXCLUSIVE else ''}(?:the|our|my) .+)",
        rf"(?P<np>.+?) (?:is|are) (?:{verbs}) by (?P<who>[A-Z][\w' -]+)",
    )
]
BELONGS = re.compile(r"(?P<np>.+?) belongs to (?P<who>[A-Z][\w' -]+)")
CONTEXT = re.compile(
    r"\b(?:in|of|inside|within|from|under|for|per|every|since|than|by|via|through)(?: the| file)* ?$", re.IGNORECASE
)
AFTER_FIRST = re.compile(
    r"\b(?:in|of|inside|within|from|under|for|per|every|since|than|on|at|after|before|via)(?: \w+)? ?$"
)
PLACED = re.compile(r"(?:is|are|lives?|sits?|stored|kept|located|found|written|saved|logged) (?:in|at|under|to) ?$")
PER = re.compile(r"(?:an?|half an)\s|one$")  # "30 pages a minute": what is counted per
PASSIVE = re.compile(
    r" (?:(?:\w+ed|sent|kept|built|run|written|held|made|sold|led|taught|stored) )?"
    r"(?:in|on|at|to|from|under|as|with|by|via|through|over|using) (?:the )?"
)
MANY = re.compile(  # verbs of what happens with several things
    r"\b(?:calls?|imports?|mentions?|fix(?:es|ed)?|blocks?|blocked|tests?|knows|likes?|contains?|includes?|supports?|lists?|"
    r"covers?|affects?|touch(?:es)?|changes|mention(?:s|ed)|links?|refers?|exports?|defines?|overrides?|breaks|closes|"
    r"closed|resolves|depends|duplicates|seen|found|reported|wants|reads?|writes?|accepts?|sent|wrote|one|some)\s(?:\w+\s)?$"
)
_PERSON = r"[A-Z][\w'-]+(?: [A-Z][\w'-]+)*"
DIVISION = re.compile(rf"(?P<who>{_PERSON}) (?P<verb>[a-z]+s) (?P<np>(?:the |our |my )?[a-z][\w -]+)")
GAPPED = re.compile(  # "Ana drives the early shift and Bo the late shift": where the verb is missing
    rf"^{_PERSON} (?P<verb>[a-z]+s) (?:the|our|my) [\w -]+?(?:,| and|, and) {_PERSON}(?= (?:the|our|my) [\w -]+$)"
)
MAY = re.compile(r"\bmay (?=(?:send|make|have|use|upload|open|keep|store|request|contain|retry|hold|create)\b)")
OR_MORE = re.compile(r" or (?:newer|later|higher|above|greater|more|older|lower|less|below)\b")
CONDITION = re.compile(
    r"(?:If|Unless|Whether|Maybe|Perhaps|Probably|Possibly|Suppose|Imagine|Assume|Assuming|Let's|Say)\b"
)
ORDERS = [  # other orders of words
    (re.compile(form), order)
    for form, order in (
        (r"^[Tt]here (?:is|are) an? (?P<kind>[\w-]+) (?P<v>\S+) (?:that|which) ", r"The \g<kind> \g<v> "),
        (r"^[Ii]t is (?P<v>\S+) (?:that|which|who) ", r"\g<v> "),
        (r"^[Ww]hoever (?P<do>[^,]+?) (?P<verb>calls|uses|runs|imports|opens|invokes) ", r"To \g<do> use "),
        (r"^(?P<v>[^ ,]+), (?P<at>[a-z]+ (?:in|at|by) [^,]+), (?=[a-z]+s )", r"\g<v> "),
        (r"^[Ff]or (?P<np>the [\w -]+?) we use (?P<v>.+)$", r"we use \g<v> for \g<np>"),
        (r"^export (?=[A-Z_]+ = )", ""),
        (r"^(?P<file>[\w/.-]+\.\w+): (?P<rest>.+ = .+)$", r"\g<rest> in \g<file>"),
        (r"^(?P<v>[\w.]+ = \S+) is what (?P<file>[\w/.-]+\.\w+) (?:says|has)$", r"\g<v> in \g<file>"),
    )
]
MOVED = re.compile(r"\b(?:moved|migrated|switched|went|gone|relocated|shifted|turned|ported)\b")
STRONG = (
    "version",
    "url",
    "network",
    "email",
    "endpoint",
    "quoted",
    "handle",
    "number",
    "clock",
    "time",
    "weekday",
    "level",
)
WHEN = ("clock", "time", "weekday")
FREE = frozenset(
    [
        "level",
        "compiler",
        "linter",
        "interpreter",
        "runtime",
        "platform",
        "protocol",
        "codec",
        "cipher",
        "dialect",
        "license",
        "scheduler",
        "collation",
        "compression",
        "topic",
        "bucket",
        "queue",
        "namespace",
        "host",
        "hostname",
        "policy",
        "vendor",
        "supplier",
        "genre",
        "sport",
        "brand",
        "breed",
        "instrument",
        "branch",
        "mode",
        "locale",
        "backend",
        "engine",
        "driver",
        "provider",
        "region",
        "environment",
        "format",
        "encoding",
        "strategy",
        "algorithm",
        "shell",
        "code",
        "password",
        "passphrase",
        "title",
        "role",
        "position",
        "job",
        "occupation",
        "profession",
        "language",
        "color",
        "colour",
        "framework",
        "editor",
        "database",
        "browser",
        "food",
        "drink",
        "hobby",
        "nickname",
        "name",
        "username",
        "status",
        "priority",
        "plan",
        "tier",
        "theme",
        "pronouns",
        "diet",
        "codename",
        "handle",
        "city",
        "country",
    ]
)
NOT_FREE = frozenset(
    [
        "level",
        "compiler",
        "linter",
        "interpreter",
        "runtime",
        "platform",
        "protocol",
        "codec",
        "cipher",
        "dialect",
        "license",
        "scheduler",
        "collation",
        "compression",
        "topic",
        "bucket",
        "queue",
        "namespace",
        "host",
        "hostname",
        "policy",
        "vendor",
        "supplier",
        "genre",
        "sport",
        "brand",
        "breed",
        "instrument",
        "a",
        "an",
        "the",
        "not",
        "too",
        "very",
        "so",
        "to",
        "that",
        "what",
        "still",
        "being",
        "wrong",
        "important",
        "tired",
        "great",
        "good",
        "bad",
        "late",
        "early",
        "fine",
        "ok",
        "okay",
        "done",
        "ready",
        "missing",
        "unclear",
        "unknown",
        "boring",
        "hard",
        "easy",
        "new",
        "old",
        "same",
        "different",
        "in",
        "on",
        "at",
        "for",
        "with",
        "about",
        "like",
        "going",
        "getting",
        "really",
        "pretty",
        "quite",
        "broken",
        "down",
        "up",
        "out",
        "there",
        "here",
        "my",
        "your",
        "his",
        "her",
        "their",
        "our",
        "no",
        "all",
        "one",
        "stale",
        "slow",
        "unstable",
        "empty",
        "full",
        "dirty",
        "clean",
        "flaky",
        "high",
        "low",
        "long",
        "short",
        "fast",
        "safe",
        "weak",
        "strong",
        "valid",
        "invalid",
        "public",
        "private",
    ]
)
SEVERAL = frozenset(
    [
        "friend",
        "brother",
        "sister",
        "son",
        "daughter",
        "child",
        "colleague",
        "teammate",
        "neighbour",
        "neighbor",
        "pet",
        "cat",
        "dog",
    ]
)
PERSONAL = re.compile(r"\b(?:wife|husband|partner|son|daughter|friend|brother|sister|mother|father|mom|dad)$")
TEXT_MAX = 2_000  # characters of a text in which facts are looked for
CLAUSE_MAX = 300
BYTES_MAX = 400
