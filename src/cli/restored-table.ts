/** What `cronfence table restored` does. */
import { systemClock } from "../clock.ts";
import { type ConfirmOptions, confirmed } from "./confirm.ts";
import { openStore, patience, type TableOptions } from "./control-table.ts";
import { print, printJson } from "./exit.ts";
import { type ActOptions, actOf } from "./operator.ts";

/** Takes every lease away and raises every fence, once somebody has said that this is meant. */
export const markTableRestored = async (
  options: TableOptions & ConfirmOptions & ActOptions & { readonly json?: boolean },
): Promise<void> => {
  const act = actOf(options);
  const store = await openStore(options);
  await confirmed(`every run of table ${store.table} that is still going is fenced out`, options, store.table);
  const jobs = await store.restored(act, systemClock.now(), patience());
  if (options.json) return printJson({ table: store.table, jobs });
  for (const job of jobs) print(`job ${job}: its fence is raised, and its lease taken away`);
  print(jobs.length === 0 ? `table ${store.table} has no jobs` : "schedules may be enabled again");
};
