/** What happens under load: a day of 1,000 jobs, 500 deliveries of one tick at once, one lease with 20 contenders. */
import { measureContention } from "./contention.ts";
import { contend } from "./load/contended-lease.ts";
import { simulateDay } from "./load/simulated-day.ts";
import { type Row, row } from "./row.ts";
import type { Scene } from "./scene.ts";

const jobs = 1_000;
const workers = 20;
const contenders = 20;

export const measureLoad = async (scene: Scene): Promise<Row[]> => [
  ...(await day(scene)),
  ...(await measureContention(scene, 500)),
  ...(await lease(scene)),
];

const day = async (scene: Scene): Promise<Row[]> => {
  const { ticks, wrong, runs, refused, requests, ms } = await simulateDay(scene, { jobs, workers, hours: 24 });
  const what = `a day of ${jobs.toLocaleString("en")} jobs with ${workers} workers`;
  return [
    row(`${what}: ticks`, ticks, "ticks"),
    row(`${what}: ticks not done exactly once`, wrong, "ticks", { exactly: 0 }),
    row(`${what}: runs`, runs, "runs", { exactly: ticks }),
    row(`${what}: second deliveries refused`, refused, "deliveries"),
    row(`${what}: requests of each delivery`, requests / (runs + refused), "requests"),
    row(`${what}: runs per second`, (runs * 1_000) / ms, "runs"),
  ];
};

const lease = async (scene: Scene): Promise<Row[]> => {
  const { runs, held, conflicts, requests, timeRatio, counted, due } = await contend(scene, { contenders, runs: 200 });
  const what = `a lease with ${contenders} contenders`;
  return [
    row(`${what}: commits of ${runs} runs that weren't counted exactly once`, Math.abs(counted - due), "commits", {
      exactly: 0,
    }),
    row(`${what}: tries refused for each run`, held / runs, "tries"),
    row(`${what}: conflicts for each run`, conflicts / runs, "conflicts"),
    row(`${what}: requests of all for each run`, requests / runs, "requests"),
    row(`${what}: a run takes of the time of one alone`, timeRatio, "ratio"),
  ];
};
