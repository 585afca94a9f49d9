/*
 * The lease protocol on one control item, for spin (https://spinroot.com). docs/protocol.md explains it; there, each
 * condition of the code stands beside the macro that takes it out of this model (-DNO_COMMIT_SEQ and so on).
 *
 * What is modelled: three attempts at a job of two ticks, with one item of work each; acquiring, queueing, takeover,
 * committing, sealing, going round, finishing, recording of predecessors and of a lost lease, and an operator's cancel.
 * The network loses requests and replies, and delivers a copy of a request at any later time. A lease may expire at any
 * time, since no safety may depend on a clock. A crash needs no step of its own: a process that is never scheduled
 * again has crashed, and every assertion must hold after every step.
 *
 * What isn't: renewals (they change nothing but the instant of expiry), the cap of the list of predecessors, rewinds,
 * and DynamoDB's own request tokens (a server that ignores them is the worse case).
 *
 * One verifier is built, and told by its environment what to look at:
 *   WITHOUT    a condition to leave out, by its number below (0: none)
 *   SCENE      what else goes on, by its number below (0: normal use)
 *   ATTEMPTS   2 or 3
 *   COPIES     how many requests the network keeps to deliver them later: 0 to 2
 *   OPERATOR   1: an operator cancels a run
 */
c_decl {
  int setting(const char *name, int otherwise);
}
c_code {
  int setting(const char *name, int otherwise) { char *value = getenv(name); return value ? atoi(value) : otherwise; }
}

byte without, scene, attempts, most;
bool operated;

#define NO_ACQUIRE_EXISTS 1
#define NO_ACQUIRE_PAUSED 2
#define NO_ACQUIRE_TICK 3
#define NO_ACQUIRE_LEASE 4
#define NO_ACQUIRE_OWN 5
#define NO_ACQUIRE_RECENT 6
#define NO_ACQUIRE_PREV 7
#define NO_TAKEOVER_FENCE 8
#define NO_QUEUE_OWNER 9
#define NO_QUEUE_FENCE 10
#define NO_COMMIT_FENCE 11
#define NO_COMMIT_OWNER 12
#define NO_COMMIT_SEQ 13
#define NO_FINISH_FENCE 14
#define NO_FINISH_OWNER 15
#define NO_FINISH_SEQ 16
#define NO_FINISH_PENDING 17
#define NO_FINISH_RECORD 18
#define NO_CANCEL_FENCE 19
#define NO_CANCEL_OWNER 20
#define NO_CANCEL_SEQ 21
#define NO_CANCEL_REMEMBER 22
#define NO_CRASHED_CONDITION 23
#define NO_CRASHED_HIGHER_FENCE 24
#define NO_LOST_CONDITION 25
#define NO_PREV_RECORDED 26
#define NO_ACQUIRE_RECOGNITION 27
#define NO_COMMIT_RECOGNITION 28
#define NO_COMMIT_TOKEN 29
#define NO_COMMIT_SEAL 30
#define NO_FINISH_RECOGNITION 31
#define NO_LOST_COUNT 32

/* An operator pauses and resumes. */
#define PAUSABLE 1
/* Somebody else's write makes the condition of a user's write fail, and then hold again. */
#define BLOCKABLE 2
/* The third attempt has the run id of the first. */
#define SAME_ID 3
/* From here on the item itself is damaged, so that only the fence's own promise is asserted. */
#define damaged (scene >= FORGETFUL)
/* No owner is remembered, so that one may be granted again. */
#define FORGETFUL 4
/* The item is brought back from a backup with its owner, under a fence above all that were granted. */
#define RESTORED_OWNER 5
/* The item is brought back without its owner, under the fence of the backup. */
#define RESTORED_FENCE 6
/* The item is deleted by hand. */
#define DELETED 7

/* The tick that an attempt was delivered. */
#define tickOf(who) (who == 1 -> 1 : 2)

#define BIT(who) (1 << (who))

/* Outcomes of runs. */
#define SUCCEEDED 1
#define CAPPED 2
#define FAILED 3
#define CRASHED 4
#define LOST 5
#define CANCELLED 6

/* Kinds of requests. */
#define ACQUIRE 1
#define QUEUE 2
#define COMMIT 3
#define SEAL 4
#define ROUND 5
#define FINISH 6
#define CANCEL 7

/* --- The tables. Owners are 1 to 3, and 0 is none; fences count from 1. */

bool exists = true;
byte fence, owner, seq, seals, token, covers;
byte watermark, tick, pending;
byte prev, recent; /* sets of owners */
bool paused;
byte left[4];      /* commits of each predecessor, as its entry says */
byte record[4];    /* outcome, by owner */
byte recorded[4];  /* commits, as the record says */
bool blocked;      /* the user's condition fails */

/* --- What is true, to compare with; nothing of the protocol reads it. */

byte top;          /* the greatest fence that was ever granted */
byte last;         /* whom it was granted to */
byte granted;      /* set of owners */
byte applied[4];   /* commits of work */
bool worked[3];      /* items of work */
byte promised[4];  /* who is to cover the tick of an attempt that was told "queued" */

/* --- The network: requests that may still be delivered, once. */

typedef Request { byte kind, who, f, n, x, y };
Request copy[2];
byte copies;
bool ok;

#define setRequest(k, w, a, b, c, d) q.kind = k; q.who = w; q.f = a; q.n = b; q.x = c; q.y = d

/* Keeps a copy of q, where the network still keeps some. */
inline keep() {
  copy[copies].kind = q.kind; copy[copies].who = q.who; copy[copies].f = q.f;
  copy[copies].n = q.n; copy[copies].x = q.x; copy[copies].y = q.y;
  copies++
}

byte author; /* of the record that two runs share, in the scene SAME_ID */
#define sharesRecord(who) (scene == SAME_ID && who != 2)
#define recordOf(who) (scene == SAME_ID && who == 3 -> 1 : who)
#define isAuthor(who) (!sharesRecord(who) || author == who)

/* --- The conditions. */

#define itemExists (exists || without == NO_ACQUIRE_EXISTS)
#define notPaused (!paused || without == NO_ACQUIRE_PAUSED)
#define tickIsLater(t) (tick < t || without == NO_ACQUIRE_TICK)
#define leaseIsFree (expired || without == NO_ACQUIRE_LEASE)
#define notOurs(me) (owner != me || without == NO_ACQUIRE_OWN)
#define notRecent(me) ((recent & BIT(me)) == 0 || without == NO_ACQUIRE_RECENT)
#define notBefore(me) ((prev & BIT(me)) == 0 || without == NO_ACQUIRE_PREV)
#define fenceSeen(f) (fence == f || without == NO_TAKEOVER_FENCE)
#define queueOwner(who) (owner == who || without == NO_QUEUE_OWNER)
#define queueFence(f) (fence == f || without == NO_QUEUE_FENCE)
#define commitFence(f) (fence == f || without == NO_COMMIT_FENCE)
#define commitOwner(me) (owner == me || without == NO_COMMIT_OWNER)
/* A seq is part of the run, which goes with its owner: where there is none, no number is equal to it. */
#define commitSeq(n) ((owner != 0 && seq == n) || without == NO_COMMIT_SEQ)
#define finishFence(f) (fence == f || without == NO_FINISH_FENCE)
#define finishOwner(me) (owner == me || without == NO_FINISH_OWNER)
#define finishSeq(n) ((owner != 0 && seq == n) || without == NO_FINISH_SEQ)
#define nothingLater(through) (pending <= through || without == NO_FINISH_PENDING)
#define recordIsOurs(me) (record[recordOf(me)] == 0 || (scene == SAME_ID && isAuthor(me)) || without == NO_FINISH_RECORD)
#define cancelFence(f) (fence == f || without == NO_CANCEL_FENCE)
#define cancelOwner(who) (owner == who || without == NO_CANCEL_OWNER)
#define cancelSeq(n) ((owner != 0 && seq == n) || without == NO_CANCEL_SEQ)

/* What a refused request of a run may find: its own earlier try. */
#define ownTry(me, myFence, kind) (owner == me && fence == myFence && \
  (token == (kind | (n << 3)) || (without == NO_COMMIT_TOKEN && seq == n + 1)))

/* --- What DynamoDB does with a request, all at once. */

#define remember(owners) recent = (scene == FORGETFUL -> 0 : recent | (owners))

/* A run's end is kept once, and says what happened. */
inline writeRecord(whose, outcome, commits) {
  if
  :: scene == SAME_ID ->
    assert(record[recordOf(whose)] == 0 || isAuthor(whose));
    author = (sharesRecord(whose) -> whose : author)
  :: scene < SAME_ID ->
    assert(record[whose] == 0 || (record[whose] == CRASHED && outcome == LOST));
    assert(commits == applied[whose])
  :: else
  fi;
  record[recordOf(whose)] = outcome;
  recorded[recordOf(whose)] = commits
}

/* No write under a fence once a greater one has been granted: only the last grant's holder writes. */
inline writesUnder(writer, under) {
  assert(under == top && writer == last);
  assert(record[writer] == 0 || scene >= SAME_ID)
}

inline acquireLease() {
  if
  :: itemExists && notPaused && tickIsLater(q.x) && notRecent(q.who) && notBefore(q.who) &&
     ((q.f == 0 && (owner == 0 || (leaseIsFree && notOurs(q.who)))) || (q.f != 0 && fenceSeen(q.f) && notOurs(q.who))) ->
    ok = true;
    fence++;
    assert(fence > top);
    assert(!paused);
    /* An acquisition is granted once; a holder is replaced only if it expired, or by whoever saw that very holder. */
    assert((granted & BIT(q.who)) == 0 || damaged);
    assert(owner == 0 || expired || q.f == fence - 1 || damaged);
    if
    :: owner != 0 -> prev = prev | BIT(owner); left[owner] = seq - seals
    :: else
    fi;
    exists = true;
    owner = q.who; seq = 0; seals = 0; token = 0; covers = q.x;
    top = fence; last = q.who; granted = granted | BIT(q.who)
  :: else
  fi;
}

inline queueTick() {
  if
  :: exists && queueOwner(q.n) && queueFence(q.f) && pending < q.x -> ok = true; pending = q.x
  :: else
  fi
}

inline commitItem() {
  if
  :: exists && commitFence(q.f) && commitOwner(q.who) && commitSeq(q.n) && (q.kind != COMMIT || !blocked) ->
    ok = true;
    writesUnder(q.who, q.f);
    seq = q.n + 1; token = q.kind | (q.n << 3); /* unique: a run sends one commit and one seal at a seq */
    if
    :: q.kind == COMMIT ->
      /* Work and watermark become visible together, in order, once. */
      assert((!worked[q.x] && q.x == watermark + 1) || damaged);
      worked[q.x] = true; watermark = q.x; applied[q.who]++
    :: q.kind == SEAL -> seals++
    :: q.kind == ROUND -> applied[q.who]++; covers = q.x; tick = q.y
    :: else
    fi
  :: else
  fi
}

/* x: outcome; y: the tick covered, and the predecessors known to be recorded; n: commits known, f: fence. */
#define through(y) ((y) & 3)
#define cleared(y) ((y) >> 2)
inline finishRun() {
  if
  :: exists && finishFence(q.f) && finishOwner(q.who) && finishSeq(q.n & 15) &&
     (q.x != SUCCEEDED || nothingLater(through(q.y))) && recordIsOurs(q.who) ->
    ok = true;
    writesUnder(q.who, q.f);
    if
    :: q.x != FAILED ->
      /* A tick is completed once, with all of its work. */
      assert((through(q.y) > tick && watermark >= through(q.y)) || damaged);
      tick = through(q.y)
    :: else
    fi;
    if
    :: q.x == SUCCEEDED -> pending = 0
    :: else
    fi;
    if
    :: without == NO_PREV_RECORDED -> remember(prev | BIT(q.who)); prev = 0
    :: else -> remember(cleared(q.y) | BIT(q.who)); prev = prev & ~cleared(q.y)
    fi;
    owner = 0; seq = 0; seals = 0; token = 0; covers = 0;
    writeRecord(q.who, q.x, (q.n & 15) - (q.n >> 4))
  :: else
  fi
}

inline cancelRun() {
  if
  :: exists && cancelFence(q.f) && cancelOwner(q.who) && cancelSeq(q.n & 15) && record[q.who] == 0 ->
    ok = true;
    /* The run that was meant, and no other. */
    assert(owner == q.who && fence == q.f);
    if
    :: without != NO_CANCEL_REMEMBER -> remember(BIT(owner))
    :: else
    fi;
    fence++;
    owner = 0; seq = 0; seals = 0; token = 0; covers = 0;
    writeRecord(q.who, CANCELLED, (q.n & 15) - (q.n >> 4))
  :: else
  fi
}

/* What must hold of the tables after each request. */
inline checkTables() {
  if
  :: !damaged ->
    who = 1;
    do
    :: who <= attempts ->
      /* A run that was granted holds the lease, stands to be recorded, or is on record. */
      assert((granted & BIT(who)) == 0 || owner == who || (prev & BIT(who)) != 0 || record[recordOf(who)] != 0);
      /* Whoever was told "queued" relies on a run that doesn't succeed without its tick. */
      assert(promised[who] == 0 || record[recordOf(promised[who])] != SUCCEEDED || tick >= tickOf(who));
      /* What isn't needed any more is forgotten, for fewer states. */
      promised[who] = (tick >= tickOf(who) -> 0 : promised[who]);
      left[who] = ((prev & BIT(who)) != 0 -> left[who] : 0);
      who++
    :: else -> break
    od;
    who = 0
  :: else
  fi
}

inline serve() {
  ok = false;
  if
  :: q.kind == ACQUIRE -> acquireLease()
  :: q.kind == QUEUE -> queueTick()
  :: q.kind == COMMIT || q.kind == SEAL || q.kind == ROUND -> commitItem()
  :: q.kind == FINISH -> finishRun()
  :: q.kind == CANCEL -> cancelRun()
  :: else
  fi;
  checkTables()
}

/* One try of q: `reply` says whether it arrives. Where it doesn't, the request was applied or may be applied later; one
   that was answered may be repeated later all the same. */
inline try() {
  if
  :: d_step { serve(); reply = true }
  :: d_step { serve(); reply = false }
  :: copies < most -> d_step { keep(); ok = false; reply = false }
  /* A rejection that was answered is believed: docs/protocol.md, "What is left". */
  :: copies < most && scene != BLOCKABLE -> d_step { keep(); serve(); reply = true }
  fi
}

/* --- An attempt. Each step is one try of a request and what is made of the answer. */

#define expires if :: expired = false :: expired = true fi

#define ACQUIRING 0
#define QUEUEING 1
#define RECORDING 2
#define COMMITTING 3
#define SEALING 4
#define TURNING 5
#define FINISHING 6
#define READING 7
#define LOSING 8
#define OVER 9

#define ownAcquisition(me) (owner == me && without != NO_ACQUIRE_RECOGNITION)
#define recognised (without != NO_COMMIT_RECOGNITION)

inline finishAs(outcome) {
  setRequest(FINISH, me, mine, n | (sealed << 4), outcome, thru | (known << 2)); step = FINISHING
}

/* The work is told that nothing of this commit was written or can be. Then its finish is the last that goes out. */
inline rejected() { told = 1 + n - sealed; finishAs(FAILED) }

/* The next commit, or the finish. Work may fail at any time. */
inline goOn() {
  if
  :: finished < thru -> setRequest(COMMIT, me, mine, n, finished + 1, 0); step = COMMITTING
  :: finished >= thru -> finishAs(SUCCEEDED)
  :: finishAs(FAILED)
  fi
}

/* Nothing is remembered that nobody needs: fewer states. */
inline leave() {
  setRequest(0, 0, 0, 0, 0, 0);
  mine = 0; n = 0; sealed = 0; finished = 0; thru = 0; known = 0; report = 0; told = 0; doubt = false; step = OVER
}

/* The report says what is on record, and what the run was told was so. */
inline reported() {
  if
  :: scene < SAME_ID ->
    assert(report == record[me] && recorded[me] == applied[me]);
    assert(report != SUCCEEDED || tick >= due);
    assert(told == 0 || applied[me] == told - 1)
  :: else
  fi;
  leave()
}

/* What a granted run knows of the item. */
inline takeState() {
  mine = fence; finished = watermark; thru = (due > pending -> due : pending); known = prev;
  if
  :: known != 0 -> setRequest(0, 0, 0, 0, 0, 0); step = RECORDING
  :: else -> goOn()
  fi
}

inline acquireOrRefused() {
  /* Nobody is told that it was refused what it was granted. */
  assert(owner != me);
  if
  :: !exists -> exists = true; fence = top + 1
  :: exists && ((recent | prev) & BIT(me)) != 0 -> leave()
  :: exists && ((recent | prev) & BIT(me)) == 0 && paused -> leave()
  :: exists && ((recent | prev) & BIT(me)) == 0 && !paused && tick >= due -> leave()
  :: exists && ((recent | prev) & BIT(me)) == 0 && !paused && tick < due ->
    if
    /* The overlap policies: skip, takeover, queue. */
    :: leave()
    :: owner != 0 -> setRequest(ACQUIRE, me, fence, 0, due, 0)
    :: owner != 0 && covers < due -> setRequest(QUEUE, me, fence, owner, due, 0); step = QUEUEING
    :: owner == 0 -> setRequest(ACQUIRE, me, 0, 0, due, 0)
    fi
  fi
}

/* A predecessor is recorded as crashed, unless its end is on record already. */
inline recordCrashed(whose) {
  if
  :: record[recordOf(whose)] == 0 || without == NO_CRASHED_CONDITION -> writeRecord(whose, CRASHED, left[whose])
  :: else
  fi
}

/* What became of the last commit: the list of predecessors tells, or else the record, if it can be read. */
inline lose() {
  if
  :: (prev & BIT(me)) != 0 -> fate = left[me]
  :: (prev & BIT(me)) == 0 && record[recordOf(me)] != 0 -> fate = recorded[recordOf(me)]
  :: (prev & BIT(me)) == 0 -> fate = n - sealed
  fi;
  if
  :: record[recordOf(me)] == 0 || (record[recordOf(me)] == CRASHED && isAuthor(me) &&
      (recorded[recordOf(me)] <= fate || without == NO_LOST_COUNT)) || without == NO_LOST_CONDITION ->
    writeRecord(me, LOST, fate); report = LOST
  /* The crash on record counts the commit in doubt, and then so does the run. */
  :: record[recordOf(me)] == CRASHED && isAuthor(me) && recorded[recordOf(me)] > fate &&
      without != NO_LOST_COUNT && without != NO_LOST_CONDITION ->
    writeRecord(me, LOST, fate + 1); report = LOST
  :: else -> report = (without == NO_FINISH_RECOGNITION -> LOST : record[recordOf(me)])
  fi;
  fate = 0;
  reported()
}

proctype attempt(byte me; byte due) {
  Request q;
  bool reply, doubt, expired;
  byte who, step, mine, n, sealed, finished, thru, known, report, fate;
  byte told; /* one more than the commits there were when one was said to be rejected */

  atomic { setRequest(ACQUIRE, me, 0, 0, due, 0) }
  do
  :: atomic { step == ACQUIRING ->
      expires;
      try();
      expired = false;
      if
      :: reply && (ok || ownAcquisition(me)) -> takeState()
      :: reply && !ok && !ownAcquisition(me) -> acquireOrRefused()
      :: else
      fi;
      reply = false; ok = false
    }

  :: atomic { step == QUEUEING ->
      try();
      if
      :: reply && (ok || (owner == q.n && fence == q.f && pending >= due)) ->
        promised[me] = q.n;
        d_step { checkTables() };
        leave()
      :: reply && !ok && !(owner == q.n && fence == q.f && pending >= due) ->
        setRequest(ACQUIRE, me, 0, 0, due, 0); step = ACQUIRING
      :: else
      fi;
      reply = false; ok = false
    }

  /* Beside the work in the code. Whether it succeeds is open, and whether that is known. */
  :: atomic { step == RECORDING ->
      if
      :: known = 0
      :: d_step {
          who = 1;
          do
          :: who <= attempts ->
            if
            :: (known & BIT(who)) != 0 -> recordCrashed(who)
            :: else
            fi;
            who++
          :: else -> break
          od;
          who = 0
        }
        if
        :: known = 0
        :: skip
        fi
      fi;
      goOn()
    }

  :: atomic { step == COMMITTING ->
      try();
      if
      :: !reply ->
        /* Doubt matters only where a user's write can be rejected. */
        doubt = (scene == BLOCKABLE);
        /* The budget may end in doubt; the finish settles it. */
        if
        :: skip
        :: doubt = false; finishAs(FAILED)
        fi
      :: reply && (ok || (ownTry(me, mine, COMMIT) && recognised)) -> n++; finished++; doubt = false; goOn()
      :: reply && !ok && !(ownTry(me, mine, COMMIT) && recognised) ->
        if
        :: owner == me && fence == mine && seq == n && blocked && (!doubt || without == NO_COMMIT_SEAL) -> doubt = false; rejected()
        :: owner == me && fence == mine && seq == n && blocked && doubt && without != NO_COMMIT_SEAL ->
          doubt = false; setRequest(SEAL, me, mine, n, 0, 0); step = SEALING
        :: else -> setRequest(0, 0, 0, 0, 0, 0); doubt = false; step = LOSING
        fi
      fi;
      reply = false; ok = false
    }

  :: atomic { step == SEALING ->
      try();
      if
      :: !reply ->
        if
        :: skip
        :: finishAs(FAILED)
        fi
      :: reply && (ok || ownTry(me, mine, SEAL)) -> n++; sealed++; rejected()
      :: reply && !ok && !ownTry(me, mine, SEAL) && ownTry(me, mine, COMMIT) -> n++; finished++; goOn()
      :: else -> setRequest(0, 0, 0, 0, 0, 0); step = LOSING
      fi;
      reply = false; ok = false
    }

  :: atomic { step == TURNING ->
      try();
      if
      :: !reply ->
        if
        :: skip
        :: finishAs(FAILED)
        fi
      :: reply && (ok || ownTry(me, mine, ROUND)) -> n++; thru = q.x; goOn()
      :: else -> setRequest(0, 0, 0, 0, 0, 0); step = LOSING
      fi;
      reply = false; ok = false
    }

  :: atomic { step == FINISHING ->
      try();
      if
      :: !reply
      :: reply && ok -> report = q.x; reported()
      :: reply && !ok && owner == me && fence == mine && seq > n ->
        /* A commit that was in doubt arrived after all, or a seal. */
        n = seq; sealed = seals; finishAs(FAILED)
      :: reply && !ok && owner == me && fence == mine && seq == n && q.x == SUCCEEDED && pending > thru ->
        if
        :: setRequest(ROUND, me, mine, n, pending, thru); step = TURNING
        :: finishAs(CAPPED)
        fi
      :: reply && !ok && owner == me && fence == mine && seq == n && !(q.x == SUCCEEDED && pending > thru) ->
        /* Its end can't be recorded, and it reports none. */
        leave()
      :: else -> setRequest(0, 0, 0, 0, 0, 0); step = READING
      fi;
      reply = false; ok = false
    }

  :: atomic { step == READING ->
      if
      :: record[recordOf(me)] != 0 && record[recordOf(me)] != CRASHED && record[recordOf(me)] != LOST &&
         without != NO_FINISH_RECOGNITION ->
        report = record[recordOf(me)]; reported()
      :: else -> step = LOSING
      fi
    }

  :: atomic { step == LOSING -> lose() }

  :: step == OVER -> break
  od
}

/* --- The rest of the world. */

/* A copy of a request arrives. */
proctype network() {
  Request q;
  bool expired;
  byte who;
  byte i;
end:
  do
  :: atomic {
      (copy[0].kind | copy[1].kind) != 0 ->
      if
      :: copy[0].kind != 0 -> i = 0
      :: copy[1].kind != 0 -> i = 1
      fi;
      setRequest(copy[i].kind, copy[i].who, copy[i].f, copy[i].n, copy[i].x, copy[i].y);
      copy[i].kind = 0;
      expires;
      d_step { serve() };
      expired = false; ok = false; i = 0;
      setRequest(0, 0, 0, 0, 0, 0)
    }
  od
}

/* Cancels the run that it sees. One that commits meanwhile is still the run that was meant. */
proctype operator() {
  Request q;
  bool reply, expired;
  byte who;
end:
  owner != 0;
look:
  atomic {
    if
    :: owner != 0 -> setRequest(CANCEL, owner, fence, seq | (seals << 4), 0, 0)
    :: else -> goto over
    fi
  };
cancelAgain:
  atomic {
    try();
    if
    :: !reply -> goto cancelAgain
    :: reply && ok -> goto over
    :: reply && !ok && owner == q.who && fence == q.f && (seq | (seals << 4)) != q.n -> goto look
    :: else -> goto over
    fi
  };
over:
  skip
}

proctype pausing() { paused = true; paused = false }

proctype blocking() { blocked = true; blocked = false }

proctype deleting() {
  d_step {
    exists = false; fence = 0; owner = 0; seq = 0; seals = 0; token = 0; covers = 0;
    watermark = 0; tick = 0; pending = 0; prev = 0; recent = 0
  }
}

proctype restoring() {
  byte wasFence, wasOwner, wasSeq, wasSeals, wasToken, wasWatermark, wasTick, wasPending, wasPrev, wasRecent;
  d_step {
    wasFence = fence; wasOwner = owner; wasSeq = seq; wasSeals = seals; wasToken = token;
    wasWatermark = watermark; wasTick = tick; wasPending = pending; wasPrev = prev; wasRecent = recent
  };
  d_step {
    watermark = wasWatermark; tick = wasTick; pending = wasPending; prev = wasPrev; recent = wasRecent;
    if
    :: scene == RESTORED_OWNER ->
      fence = top + 1; top = fence; last = wasOwner;
      owner = wasOwner; seq = wasSeq; seals = wasSeals; token = wasToken
    :: else ->
      fence = wasFence; top = wasFence; last = 0;
      owner = 0; seq = 0; seals = 0; token = 0
    fi
  }
}

/* Whoever takes an expired lease for a crash, without having been granted a higher fence. */
proctype bystander() {
  byte who;
end:
  d_step { owner != 0 && record[owner] == 0 -> who = owner; writeRecord(who, CRASHED, seq - seals); who = 0 }
}

init {
  atomic {
    c_code {
      now.without = setting("WITHOUT", 0); now.scene = setting("SCENE", 0); now.attempts = setting("ATTEMPTS", 2);
      now.most = setting("COPIES", 1); now.operated = setting("OPERATOR", 0);
    };
    run network();
    run attempt(1, tickOf(1));
    run attempt(2, tickOf(2));
    if :: attempts > 2 -> run attempt(3, tickOf(3)) :: else fi;
    if :: operated -> run operator() :: else fi;
    if :: scene == PAUSABLE -> run pausing() :: else fi;
    if :: scene == BLOCKABLE -> run blocking() :: else fi;
    if :: scene == DELETED -> run deleting() :: else fi;
    if :: scene == RESTORED_OWNER || scene == RESTORED_FENCE -> run restoring() :: else fi;
    if :: without == NO_CRASHED_HIGHER_FENCE -> run bystander() :: else fi
  }
}
