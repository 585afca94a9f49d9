/** The drills there are. */

/** What each drill does, by its name. */
export const drillTexts = {
  undisturbed: "nothing goes wrong: the job does its work, all of it through commits",
  "double trigger": "the same tick is delivered twice at once, the second time at every request of the first run",
  "paused holder":
    "the run stops at every request until its lease is over and another has done the work, and then goes on",
  "crash at every request, not applied": "the process dies at every request, before DynamoDB gets it",
  "crash at every request, applied": "the process dies at every request, after DynamoDB has done it",
  "lost reply at every request": "every request is done by DynamoDB, and its reply lost",
  "missed window": "several ticks aren't delivered; the next one makes up for them",
  "duplicate delivery": "the same event comes again after its run has succeeded, and once more after the next one",
  timeout: "the job's code goes on past its deadline without looking at its signal",
  "batch cap": "the run stops at a limit with work left; the next ones go on",
  "clock skew":
    "a machine whose clock is ahead takes the lease of a run that is still going; another's clock is behind",
  "own clock":
    "the machine's own clock is a day off, as the job's code would read it by Date.now(), or its time zone is another",
  "thaw in a later invocation": "a run is frozen with its environment, and thaws in the middle of the next tick's run",
  "spring clock change": "the ticks around the night in which the clocks of the job's zone are set forward",
  "autumn clock change": "the ticks around the night in which the clocks of the job's zone are set back",
  guard: "the plan is larger than it may be: nothing at all is done until that is put right",
  "dry run": "nothing is written and nothing is done outside",
} as const;

export type DrillName = keyof typeof drillTexts;

export const drillNames = Object.keys(drillTexts) as DrillName[];
