------------------------------ MODULE Counter ------------------------------
\* One lane of a counter, whose home is Region 1, in a table of one or two Regions. Every action below is one request
\* that a shipped program yields, or one thing that happens to the table. The words are those of docs/glossary.md;
\* README.md tells what is left out, and why.
\* Deltas are the numbers 1..N: a delta's number is its token, and its time. Delta d is a change of 4^(d-1), so a sum
\* in base 4 tells how often each counts. An item is the set of the deltas that it holds: {d} is a delta that stands
\* alone, a larger set is a pack.
EXTENDS Naturals, Sequences, FiniteSets, TLC

CONSTANTS
    N,           \* how many deltas
    Regions,     \* {1} or {1, 2}
    ByAway,      \* the items that may (also) be put through Region 2
    ByHome,      \* the items that may (also) be put through Region 1
    LateRetries, \* may an item be put again after it was deleted?
    Compactors,  \* the home compactors
    Reads,       \* what reads there are: "home", "away" (strong), "eventual" (at home)
    AnyClock,    \* may a fold's cutoff be anything at all?
    Mistake      \* "none", or the rule that is left out

Deltas == 1..N
Items  == ByHome \union ByAway
Home   == 1
Away   == 2
Lag    == 3      \* a node of Region 1 that lags; eventually consistent requests may meet it
Nodes  == {Home, Away, Lag}

VARIABLES
    log,      \* every commit ever made: its version, total, watermark, hi and the deltas of its segment
    ckpt,     \* ckpt[node]: which commit's checkpoint the node holds (a place in the log; 0: none)
    segs,     \* the commits whose segment is visible at home
    item,     \* item[node][item]: "none" (never seen), "there" or "gone" (deleted)
    wire,     \* puts and deletes of items on their way to the other Region
    passed,   \* the highest token whose allowed lateness is over
    onTime,   \* the deltas that reached home before that
    note,     \* the clean note: a version, and whether `keep` has passed since
    comp,     \* the compactors
    reader    \* one reader; more would not see more, for readers change nothing

vars == <<log, ckpt, segs, item, wire, passed, onTime, note, comp, reader>>

\* ======== Words ========
Amount(d) == 4^(d-1)
RECURSIVE Sum(_)
Sum(S) == IF S = {} THEN 0 ELSE LET d == CHOOSE x \in S : TRUE IN Amount(d) + Sum(S \ {d})
Times(sum, d) == (sum \div Amount(d)) % 4            \* how often d is in the sum
Min(S) == CHOOSE x \in S : \A y \in S : x <= y
Max(S) == CHOOSE x \in S : \A y \in S : x >= y

Ever(r)    == {d \in Deltas : \E i \in Items : d \in i /\ item[r][i] # "none"}     \* whatever has become of it
There(r)  == {d \in Deltas : \E i \in Items : d \in i /\ item[r][i] = "there"}

\* Items by their sort keys: the highest token, a delta before the packs that end with it, these in some order.
SortKey(i) == 2 * Max(i) + IF Cardinality(i) = 1 THEN 0 ELSE 1
RECURSIVE InOrder(_)
InOrder(S) == IF S = {} THEN <<>>
              ELSE LET i == CHOOSE x \in S : \A y \in S : SortKey(x) <= SortKey(y) IN <<i>> \o InOrder(S \ {i})
Order      == InOrder(Items)
Upto(d)    == Cardinality({i \in Items : Max(i) <= d})    \* how many items stand at or below d's
Span       == Max({Max(i) - Min(i) : i \in Items})        \* no item's deltas lie further apart

Version(c)   == IF c = 0 THEN 0 ELSE log[c].version
Total(c)     == IF c = 0 THEN 0 ELSE log[c].total
Watermark(c) == IF c = 0 THEN 0 ELSE log[c].watermark
Counted(c)   == {d \in Deltas : Times(Total(c), d) > 0}

Acknowledged == UNION {Ever(r) : r \in Regions}
Listed       == UNION {log[i].ids : i \in DOMAIN log}
\* Deltas that were a stray at some time: a watermark passed them without them.
Strays       == {d \in Deltas : \E i \in DOMAIN log :
                    /\ log[i].watermark >= d
                    /\ \A j \in 1..i : d \notin log[j].ids}
\* What a read that takes no time would say in a Region.
Value(r)     == Total(ckpt[r]) + Sum({d \in There(r) : d > Watermark(ckpt[r])})

LastSegmentVisible(c) == \E i \in segs : log[i].hi = log[c].hi /\ log[i].version = log[c].version

Resting == [does |-> "nothing", seen |-> 0, cutoff |-> 0, at |-> 0, took |-> {}, hi |-> 0,
            noted |-> 0, old |-> FALSE]
Idle    == [does |-> "nothing", kind |-> "home", sum |-> 0, above |-> 0, at |-> 0, must |-> {},
            before |-> {}]
NoNote  == [version |-> 0, old |-> FALSE]

Reading == reader.does \in {"tail", "get total"}

Init ==
    /\ log = <<>>
    /\ ckpt = [n \in Nodes |-> 0]
    /\ segs = {}
    /\ item = [n \in Nodes |-> [i \in Items |-> "none"]]
    /\ wire = {}
    /\ passed = 0
    /\ onTime = {}
    /\ note = NoNote
    /\ comp = [k \in Compactors |-> Resting]
    /\ reader = Idle

\* ======== The table: time, replication, transactions that land item by item ========

\* The allowed lateness of one more token is over.
TimePasses ==
    /\ ~AnyClock /\ passed < N
    /\ passed' = passed + 1
    /\ UNCHANGED <<log, ckpt, segs, item, wire, onTime, note, comp, reader>>

ReachesHome(i) == IF AnyClock THEN onTime ELSE onTime \union {d \in i : d > passed}

\* Any item on the wire arrives, in any order.  Last writer wins, by whatever stamp: where two writes meet, either wins.
Arrive ==
    \E m \in wire :
        /\ wire' = wire \ {m}
        /\ \E outcome \in {"there", "gone"} :
            /\ \/ outcome = (IF m.is = "put" THEN "there" ELSE "gone")
               \/ outcome = item[m.to][m.item]
            /\ item' = [item EXCEPT ![m.to][m.item] = outcome]
        /\ onTime' = IF m.to = Home THEN ReachesHome(m.item) ELSE onTime
        /\ UNCHANGED <<log, ckpt, segs, passed, note, comp, reader>>

\* A checkpoint arrives in Region 2.  Its only writer is at home, so a newer one wins; one may overtake others.
CheckpointArrives ==
    /\ Away \in Regions
    /\ \E c \in (ckpt[Away] + 1)..ckpt[Home] : ckpt' = [ckpt EXCEPT ![Away] = c]
    /\ UNCHANGED <<log, segs, item, wire, passed, onTime, note, comp, reader>>

\* The two items of a commit become visible one by one, in either order, also to strong reads.
CheckpointLands ==
    /\ ckpt[Home] < Len(log)
    /\ ckpt' = [ckpt EXCEPT ![Home] = @ + 1]
    /\ UNCHANGED <<log, segs, item, wire, passed, onTime, note, comp, reader>>

SegmentLands ==
    \E i \in DOMAIN log \ segs :
        /\ segs' = segs \union {i}
        /\ UNCHANGED <<log, ckpt, item, wire, passed, onTime, note, comp, reader>>

\* The lagging node catches up with one item.  A node may lag for long, but not much of `keep`: whoever reads while it
\* still holds an older checkpoint is over, too, when `keep` has passed.
NodeCatchesUp ==
    /\ "eventual" \in Reads
    /\ \/ /\ \E c \in (ckpt[Lag] + 1)..ckpt[Home] : ckpt' = [ckpt EXCEPT ![Lag] = c]
          /\ reader' = IF Reading THEN [reader EXCEPT !.before = {"note"} \union Compactors] ELSE reader
          /\ UNCHANGED item
       \/ /\ \E i \in Items : item[Lag][i] # item[Home][i] /\ item' = [item EXCEPT ![Lag][i] = item[Home][i]]
          /\ UNCHANGED <<ckpt, reader>>
    /\ UNCHANGED <<log, segs, wire, passed, onTime, note, comp>>

To(r, i, what) == IF Cardinality(Regions) = 2 THEN {[to |-> 3 - r, item |-> i, is |-> what]} ELSE {}

\* `keep` has passed since the time that a compactor took, or that is in the note.  By then every read that was
\* running is over, and no node of Region 1 lags behind the noted version.
KeepPasses ==
    /\ \/ /\ note.version > 0 /\ ~note.old
          /\ "note" \notin reader.before \/ Mistake = "LongRead"
          /\ "eventual" \in Reads => Version(ckpt[Lag]) >= note.version
          /\ note' = [note EXCEPT !.old = TRUE]
          /\ UNCHANGED comp
       \/ \E k \in Compactors :
          /\ comp[k].does = "clean: put note" /\ ~comp[k].old
          /\ k \notin reader.before \/ Mistake = "LongRead"
          /\ "eventual" \in Reads => Version(ckpt[Lag]) >= Version(comp[k].seen)
          /\ comp' = [comp EXCEPT ![k].old = TRUE]
          /\ UNCHANGED note
    /\ UNCHANGED <<log, ckpt, segs, item, wire, passed, onTime, reader>>

\* ======== add: one put of an item, through either Region, any number of times. Where it is there already nothing
\* changes: a delta is put if absent, and a pack's name tells its content.
Add ==
    \E i \in Items, r \in Regions :
        /\ i \in (IF r = Home THEN ByHome ELSE ByAway)
        /\ item[r][i] = "none" \/ (LateRetries /\ item[r][i] = "gone")
        /\ item' = [item EXCEPT ![r][i] = "there"]
        /\ wire' = wire \union To(r, i, "put")
        /\ onTime' = IF r = Home THEN ReachesHome(i) ELSE onTime
        /\ UNCHANGED <<log, ckpt, segs, passed, note, comp, reader>>

\* ======== read: the checkpoint, then the tail item by item: of each what lies above the watermark and was in no item
\* before. `must` is what this Region knew when the read began; `before` names the notes it is older than.
NodesOf(kind) == CASE kind = "home" -> {Home} [] kind = "away" -> {Away} [] kind = "eventual" -> {Home, Lag}

Knows(n) == Counted(ckpt[n]) \union Ever(n)

AfterTail(r) ==    \* with TailBeforeCheckpoint the checkpoint is still to be got
    IF r.at < Len(Order) THEN r
    ELSE [r EXCEPT !.does = IF Mistake = "TailBeforeCheckpoint" THEN "get total" ELSE "done", !.above = 0]

Counts(d) ==    \* does the reader count this entry?
    \/ d > reader.above /\ (Times(reader.sum, d) = 0 \/ Mistake = "CountTwice")
    \/ d <= reader.above /\ Mistake = "CountBelow"

ReadCheckpoint ==
    /\ reader.does = "nothing"
    /\ \E kind \in Reads : \E n \in NodesOf(kind) :
        reader' = AfterTail([does |-> "tail", kind |-> kind, above |-> Watermark(ckpt[n]),
                             at |-> Upto(Watermark(ckpt[n])),
                             sum |-> IF Mistake = "TailBeforeCheckpoint" THEN 0 ELSE Total(ckpt[n]),
                             must |-> {d \in Deltas : \A m \in NodesOf(kind) : d \in Knows(m)}, before |-> {}])
    /\ UNCHANGED <<log, ckpt, segs, item, wire, passed, onTime, note, comp>>

ReadTail ==
    /\ reader.does = "tail"
    /\ \E n \in NodesOf(reader.kind) :
        LET i   == Order[reader.at + 1]
            new == IF item[n][i] = "there" THEN {d \in i : Counts(d)} ELSE {}
        IN reader' = AfterTail([reader EXCEPT !.at = @ + 1, !.sum = @ + Sum(new)])
    /\ UNCHANGED <<log, ckpt, segs, item, wire, passed, onTime, note, comp>>

ReadTotalTooLate ==    \* only with the mistake TailBeforeCheckpoint
    /\ reader.does = "get total"
    /\ \E n \in NodesOf(reader.kind) :
        reader' = [reader EXCEPT !.does = "done", !.sum = @ + Total(ckpt[n])]
    /\ UNCHANGED <<log, ckpt, segs, item, wire, passed, onTime, note, comp>>

ReadEnds ==
    /\ reader.does = "done"
    /\ reader' = Idle
    /\ UNCHANGED <<log, ckpt, segs, item, wire, passed, onTime, note, comp>>

\* ======== The compactors. A visit's fold, settle and clean may start in any order; whoever gives up or crashes
\* rests, and forgets all it held.
Table == <<log, ckpt, segs, item, wire, passed, onTime, note, reader>>

Goes(k, does) == comp' = [comp EXCEPT ![k].does = does]
Rests(k)      == comp' = [comp EXCEPT ![k] = Resting]

Crash(k) ==
    /\ comp[k].does # "nothing"
    /\ Rests(k)
    /\ UNCHANGED Table

\* begin, first request: get the checkpoint.
GetCheckpoint(k, from, to) ==
    /\ comp[k].does = from
    /\ comp' = [comp EXCEPT ![k].does = to, ![k].seen = ckpt[Home]]
    /\ UNCHANGED Table

\* begin, second request: the segment of its last commit, or, without a checkpoint, any segment.
\* If it is not as it should be: get the checkpoint again, or give up.
SeeLastSegment(k, from, to, again) ==
    /\ comp[k].does = from
    /\ LET c    == comp[k].seen
           fine == IF c = 0 THEN segs = {} ELSE LastSegmentVisible(c)
           skip == \/ Mistake = "NoBegin"
                   \/ Mistake = "NoBeginInFold"   /\ from = "fold: see segment"
                   \/ Mistake = "NoBeginInSettle" /\ from = "settle: see segment"
       IN comp' = [comp EXCEPT ![k].does = IF fine \/ (c > 0 /\ skip) THEN to ELSE again,
                               ![k].seen = IF fine \/ (c > 0 /\ skip) THEN c ELSE 0]
    /\ UNCHANGED Table

\* commit: one transaction, if the version is still the one that begin saw.  It has to wait while another commit's
\* checkpoint is landing (a conflict).  Afterwards a fold may go on with what it has read; else the compactor rests: its
\* answer may as well have been lost.
Ended(k) == comp[k].at >= Upto(IF Mistake = "FoldUptoCutoff" THEN comp[k].cutoff ELSE comp[k].cutoff + Span)

Commit(k, hi, watermark, ids) ==
    LET c    == comp[k].seen
        next == [version |-> Version(c) + 1, total |-> Total(c) + Sum(ids), watermark |-> watermark, hi |-> hi,
                 ids |-> ids]
        holds == /\ Version(ckpt[Home]) = Version(c) \/ Mistake = "NoVersionCondition"
                 /\ \A i \in DOMAIN log : ~(log[i].hi = hi /\ log[i].version = next.version)
        deleted == IF Mistake = "DeleteAtFold" /\ holds THEN {i \in Items : i \subseteq ids} ELSE {}
        left    == [Resting EXCEPT !.does = "fold: again", !.took = comp[k].took \ ids, !.cutoff = comp[k].cutoff,
                                   !.at = comp[k].at, !.hi = watermark]
    IN /\ ckpt[Home] = Len(log)
       /\ log' = IF holds THEN Append(log, next) ELSE log
       /\ item' = [item EXCEPT ![Home] = [i \in Items |-> IF i \in deleted THEN "gone" ELSE @[i]]]
       /\ wire' = wire \union UNION {To(Home, i, "delete") : i \in deleted}
       /\ \/ Rests(k)
          \/ holds /\ comp[k].does = "fold: query" /\ ~(Ended(k) /\ left.took = {}) /\ comp' = [comp EXCEPT ![k] = left]
       /\ UNCHANGED <<ckpt, segs, passed, onTime, note, reader>>

\* ======== fold: begin; fix the cutoff; query the tail, item by item, as far as an item may hold a delta at or below
\* the cutoff; commit the first of those that are complete: no later item can hold a lower one. Then begin again, and
\* go on with what was read, if the watermark is as it was left.
FoldBegin1(k) == GetCheckpoint(k, "nothing", "fold: see segment")
FoldBegin2(k) == SeeLastSegment(k, "fold: see segment", "fold: cutoff", "nothing")

FoldCutoff(k) ==
    /\ comp[k].does = "fold: cutoff"
    /\ \E cutoff \in IF AnyClock THEN Deltas ELSE IF Mistake = "CutoffAfterQuery" THEN {N} ELSE {passed} :
        IF cutoff <= Watermark(comp[k].seen) THEN Rests(k)
        ELSE comp' = [comp EXCEPT ![k].does = "fold: query", ![k].cutoff = cutoff,
                                  ![k].at = Upto(Watermark(comp[k].seen))]
    /\ UNCHANGED Table

FoldQuery(k) ==
    /\ comp[k].does = "fold: query" /\ ~Ended(k)
    /\ LET i    == Order[comp[k].at + 1]
           upto == IF Mistake = "FoldWholePacks" THEN N ELSE comp[k].cutoff
           new  == {d \in i : item[Home][i] = "there" /\ d > Watermark(comp[k].seen) /\ d <= upto}
       IN comp' = [comp EXCEPT ![k].at = @ + 1, ![k].took = @ \union new]
    /\ UNCHANGED Table

Complete(k, d) ==
    /\ Ended(k) \/ d < Max(Order[comp[k].at]) - Span \/ Mistake = "FoldIncomplete"
    /\ Mistake = "CutoffAfterQuery" => d <= passed

FoldCommit(k) ==
    /\ comp[k].does = "fold: query"
    /\ \E last \in {d \in comp[k].took : Complete(k, d)} :    \* all of them, or the first ones (fold_max)
        Commit(k, last, last, {d \in comp[k].took : d <= last})

FoldAgain1(k) == GetCheckpoint(k, "fold: again", "fold: see again")
FoldAgain2(k) ==
    IF Watermark(comp[k].seen) = comp[k].hi \/ Mistake = "FoldOnThoughMoved"
    THEN SeeLastSegment(k, "fold: see again", "fold: query", "fold: again")
    ELSE comp[k].does = "fold: see again" /\ Rests(k) /\ UNCHANGED Table

\* ======== settle: find candidates by eventually consistent reads, which may show any delta that was ever at home;
\* begin; their covering segments, first the one that tells hi, then all under it; commit what none lists.
SegmentsFirst == Mistake = "SegmentsBeforeCheckpoint"

SettleFind(k) ==
    /\ comp[k].does = "nothing"
    /\ \E found \in SUBSET {d \in Ever(Home) : d <= Watermark(ckpt[Home])} :
        /\ found # {}
        /\ comp' = [comp EXCEPT ![k].does = IF SegmentsFirst THEN "settle: cover" ELSE "settle: get checkpoint",
                                ![k].took = found]
    /\ UNCHANGED Table

SettleBegin1(k) == GetCheckpoint(k, "settle: get checkpoint", "settle: see segment")
SettleBegin2(k) == SeeLastSegment(k, "settle: see segment",
                                  IF SegmentsFirst THEN "settle: commit" ELSE "settle: cover",
                                  "settle: get checkpoint")

\* What a request for segments may see: all that are visible at home; some, if it is eventually consistent.
Views == IF Mistake = "StaleConfirm" THEN SUBSET segs ELSE {segs}

SettleCover(k) ==
    /\ comp[k].does = "settle: cover"
    /\ \E view \in Views :
        LET first == Min(comp[k].took)
            over  == {i \in view : log[i].hi >= first}
        IN IF over = {}
           THEN Goes(k, "lane damaged")
           ELSE LET hi   == Min({log[i].hi : i \in over})
                    one  == CHOOSE i \in over : log[i].hi = hi /\ \A j \in over : log[j].hi = hi =>
                                                log[i].version <= log[j].version
                    left == {d \in comp[k].took : d <= hi} \ log[one].ids
                IN IF left = {} THEN Rests(k)
                   ELSE comp' = [comp EXCEPT ![k].does = "settle: segments", ![k].hi = hi, ![k].took = left]
    /\ UNCHANGED Table

SettleSegments(k) ==
    /\ comp[k].does = "settle: segments"
    /\ \E view \in Views :
        LET left == comp[k].took \ UNION {log[i].ids : i \in {j \in view : log[j].hi = comp[k].hi}}
        IN IF left = {} THEN Rests(k)
           ELSE comp' = [comp EXCEPT ![k].does = IF SegmentsFirst THEN "settle: get checkpoint" ELSE "settle: commit",
                                     ![k].took = left]
    /\ UNCHANGED Table

SettleCommit(k) ==
    /\ comp[k].does = "settle: commit"
    /\ \E last \in comp[k].took :    \* all of them, or the first ones (fold_max)
        LET taken == {d \in comp[k].took : d <= last} IN
        Commit(k, IF Mistake = "NewHi" THEN last ELSE comp[k].hi, Watermark(comp[k].seen), taken)

\* ======== clean: get the checkpoint, get the note. `keep` has passed: delete, one by one, the items of which visible
\* segments up to the noted version list everything. Then ask the other Region; take the time; put the new note.
CleanBegin(k) ==
    /\ ckpt[Home] > 0
    /\ GetCheckpoint(k, "nothing", "clean: get note")

\* The step after the deletes: note the next version, unless it is noted already.
AskOrRest(k, version) ==
    IF version >= Version(comp[k].seen) THEN Resting
    ELSE [Resting EXCEPT !.does = IF Mistake = "TimeBeforeAnswers" THEN "clean: take time" ELSE "clean: ask",
                         !.seen = comp[k].seen]

CleanGetNote(k) ==
    /\ comp[k].does = "clean: get note"
    /\ comp' = [comp EXCEPT ![k] =
            IF note.version = 0 THEN AskOrRest(k, 0)
            ELSE IF ~note.old /\ Mistake # "CleanAtFirstVisit" THEN Resting
            ELSE [comp[k] EXCEPT !.does = "clean: delete", !.noted = note.version]]
    /\ UNCHANGED Table

MayDelete(k, i) ==
    LET listed == UNION {log[j].ids : j \in {s \in segs : log[s].version <= comp[k].noted
                                                         \/ Mistake = "CleanAnyVersion"}}
    IN /\ Max(i) <= Watermark(comp[k].seen)
       /\ item[Home][i] = "there"
       /\ \/ i \subseteq listed
          \/ Mistake = "CleanUnlisted"
          \/ Mistake = "CleanAnyListed" /\ i \intersect listed # {}
          \/ Mistake = "CleanHighestListed" /\ Max(i) \in listed

CleanDelete(k) ==
    /\ comp[k].does = "clean: delete"
    /\ \E i \in Items :
        /\ MayDelete(k, i)
        /\ item' = [item EXCEPT ![Home][i] = "gone"]
        /\ wire' = wire \union To(Home, i, "delete")
    /\ UNCHANGED <<log, ckpt, segs, passed, onTime, note, comp, reader>>

CleanDeleted(k) ==
    /\ comp[k].does = "clean: delete"
    /\ comp' = [comp EXCEPT ![k] = AskOrRest(k, comp[k].noted)]
    /\ UNCHANGED Table

CleanAsk(k) ==
    /\ comp[k].does = "clean: ask"
    /\ IF Away \notin Regions \/ Version(ckpt[Away]) >= Version(comp[k].seen) \/ Mistake = "CleanWithoutOtherRegions"
       THEN Goes(k, IF Mistake = "TimeBeforeAnswers" THEN "clean: put note" ELSE "clean: take time")
       ELSE Rests(k)
    /\ UNCHANGED Table

CleanTakeTime(k) ==
    /\ comp[k].does = "clean: take time"
    /\ Goes(k, IF Mistake = "TimeBeforeAnswers" THEN "clean: ask" ELSE "clean: put note")
    /\ reader' = IF Reading THEN [reader EXCEPT !.before = @ \union {k}] ELSE reader
    /\ UNCHANGED <<log, ckpt, segs, item, wire, passed, onTime, note>>

CleanPutNote(k) ==
    /\ comp[k].does = "clean: put note"
    /\ note' = [version |-> Version(comp[k].seen), old |-> comp[k].old]
    /\ reader' = [reader EXCEPT !.before = (@ \ {k, "note"}) \union IF k \in @ THEN {"note"} ELSE {}]
    /\ Rests(k)
    /\ UNCHANGED <<log, ckpt, segs, item, wire, passed, onTime>>

\* Only with the mistake ForgetSegments: a segment whose deltas are all deleted goes, too (its hi stays as a cover).
SegmentForgotten ==
    /\ Mistake = "ForgetSegments"
    /\ \E i \in segs :
        /\ log[i].ids # {} /\ \A d \in log[i].ids : d \notin There(Home)
        /\ log' = [log EXCEPT ![i].ids = {}]
    /\ UNCHANGED <<ckpt, segs, item, wire, passed, onTime, note, comp, reader>>

Compactor(k) ==
    \/ Crash(k)
    \/ FoldBegin1(k) \/ FoldBegin2(k) \/ FoldCutoff(k) \/ FoldQuery(k) \/ FoldCommit(k)
    \/ FoldAgain1(k) \/ FoldAgain2(k)
    \/ SettleFind(k) \/ SettleBegin1(k) \/ SettleBegin2(k) \/ SettleCover(k) \/ SettleSegments(k) \/ SettleCommit(k)
    \/ CleanBegin(k) \/ CleanGetNote(k) \/ CleanDelete(k) \/ CleanDeleted(k) \/ CleanAsk(k) \/ CleanTakeTime(k)
    \/ CleanPutNote(k)

Next ==
    \/ TimePasses \/ KeepPasses
    \/ Arrive \/ CheckpointArrives \/ CheckpointLands \/ SegmentLands \/ NodeCatchesUp
    \/ Add
    \/ ReadCheckpoint \/ ReadTail \/ ReadTotalTooLate \/ ReadEnds
    \/ \E k \in Compactors : Compactor(k)
    \/ SegmentForgotten

Spec == Init /\ [][Next]_vars

EitherCompactor == Permutations(Compactors)    \* it does not matter which is which

\* ======== What is promised ========
Done == reader.does = "done"
Got  == {d \in Deltas : Times(reader.sum, d) > 0}

\* Every read, anywhere, at any moment, is the sum of a real set of deltas, none of them twice.
EveryReadIsATrueSum == Done => /\ \A d \in Deltas : Times(reader.sum, d) <= 1
                               /\ Got \subseteq Acknowledged

\* A strong read at home holds every delta that was there before it began and came on time.
AHomeReadHoldsWhatCameOnTime == Done /\ reader.kind = "home" => reader.must \intersect onTime \subseteq Got

\* A read holds whatever its Region knew when it began, unless that was a stray.  (Whatever an earlier read there held,
\* its Region knew; for an eventually consistent read: every node of the Region.)
WhatWasKnownStays == Done => reader.must \subseteq Got \union Strays

\* When all has arrived, landed and been settled, every acknowledged delta counts exactly once, in every Region.
AtRest == /\ wire = {}
          /\ ckpt[Home] = Len(log) /\ segs = DOMAIN log
          /\ \A r \in Regions : ckpt[r] = ckpt[Home]
          /\ \A d \in There(Home) : d <= Watermark(ckpt[Home]) => d \in Listed
InTheEndEachCountsOnce == AtRest => \A r \in Regions, d \in Deltas :
                              Times(Value(r), d) = IF d \in Acknowledged THEN 1 ELSE 0

\* ======== Why it holds ========
\* A checkpoint's total is the sum of the segments up to its version, and each delta is in at most one of them.
TheTotalIsTheSegments == \A i \in DOMAIN log :
    /\ log[i].version = i
    /\ \A d \in Deltas : Times(log[i].total, d) = Cardinality({j \in 1..i : d \in log[j].ids})
    /\ \A j \in 1..(i-1) : log[i].ids \intersect log[j].ids = {}

\* An acknowledged delta is listed, or at home, or on its way there.
NothingIsLost == \A d \in Acknowledged :
    d \in Listed \/ d \in There(Home) \/ \E m \in wire : m.to = Home /\ m.is = "put" /\ d \in m.item

\* What comes on time is never a stray.
OnTimeIsNeverAStray == onTime \intersect Strays = {}

\* Whoever has begun at a version can see every segment up to it.
WhoHasBegunSeesAllSegments == \A k \in Compactors :
    comp[k].does \in {"fold: cutoff", "fold: query", "settle: cover", "settle: segments", "settle: commit"} => 1..comp[k].seen \subseteq segs

\* settle always finds a cover.
TheLaneIsNeverDamaged == \A k \in Compactors : comp[k].does # "lane damaged"

\* ======== Things that must be able to happen: each is checked as an invariant that has to FAIL, so that a model in
\* which nothing happens is found out.
CountedByAll == \A d \in Deltas, r \in Regions : d \in Counted(ckpt[r])
NeverAllSettledAndCleaned ==
    ~(AtRest /\ CountedByAll /\ Strays # {} /\ \A i \in Items, r \in Regions : item[r][i] = "gone")
NeverARetryAfterTheClean ==
    ~\E i \in Items : Cardinality(Regions) = 2 /\ item[Home][i] = "gone" /\ item[Away][i] = "there"
                      /\ [to |-> Home, item |-> i, is |-> "put"] \in wire
NeverAReadOverFoldAndNote ==    \* the watermark has passed a running read, and the note was taken meanwhile
    ~(reader.does = "tail" /\ "note" \in reader.before /\ \A r \in Regions : Upto(Watermark(ckpt[r])) > reader.at)
NeverAStrayOutOfAnAwayRead ==    \* what is not promised: a read in Region 2 held it, a later one does not
    ~(Done /\ reader.kind = "away" /\ ~(reader.must \subseteq Got))
NeverAReadFromALaggingNode == ~(Done /\ reader.kind = "eventual" /\ Got # {} /\ ~(Knows(Home) \subseteq Got))
NeverTwoCommitsAtOneVersion ==
    ~\E k, l \in Compactors : k # l /\ comp[k].seen = comp[l].seen /\ comp[k].took # {} /\ comp[l].took # {}
        /\ {comp[k].does, comp[l].does} \subseteq {"fold: query", "settle: commit"}
NeverAStrayInAPackAcrossTheWatermark ==
    ~\E i \in Items : item[Home][i] = "there" /\ Max(i) > Watermark(ckpt[Home])
                      /\ \E d \in i \ Listed : d <= Watermark(ckpt[Home])
NeverInOtherCompanyAfterTheClean ==
    ~\E i, j \in Items : i # j /\ item[Home][i] = "gone" /\ item[Home][j] = "there"
                         /\ i \intersect j # {} /\ ~(j \subseteq Listed)
NeverOneInTwoItems ==
    ~\E i, j \in Items : i # j /\ item[Home][i] = "there" /\ item[Home][j] = "there" /\ i \intersect j # {}
                         /\ Done /\ i \intersect Got # {}
=============================================================================
