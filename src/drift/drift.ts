/**
 * What differs between a service's template, as the repo makes it, and what is deployed: schedules and their targets, retry
 * settings, functions, alarms, tables and log groups.
 *
 * It reads and changes nothing. It doesn't look at roles and their policies, queues, topics and dashboards, nor at code: the
 * version that a function reports stands for that.
 */
import { readActual, readStrays } from "./actual.ts";
import { type ClientConfig, openClients } from "./clients.ts";
import { readStack } from "./deployed-stack.ts";
import { type Compared, compare } from "./findings.ts";
import { type Remedy, remediesFor } from "./remedies.ts";
import type { Template } from "./template.ts";

export interface DriftRequest {
  /** As the repo makes it. */
  readonly template: Template;
  readonly stack: string;
  /** The command that deploys the service. */
  readonly deploy: string;
}

export interface Drift extends Compared {
  readonly stack: string;
  readonly region: string;
  readonly remedies: readonly Remedy[];
}

/** @throws NoStackError where the stack isn't deployed, and whatever AWS answers that isn't an answer */
export const findDrift = async (request: DriftRequest, config: ClientConfig): Promise<Drift> => {
  const clients = await openClients(config);
  try {
    const { stack, template } = await readStack(request.stack, clients);
    const [actual, strays] = await Promise.all([
      readActual(template, stack, clients),
      readStrays(template, stack, clients),
    ]);
    const compared = compare(request.template, template, actual, strays, stack);
    const remedies = remediesFor(compared.findings, request.deploy, stack);
    return { stack: stack.name, region: stack.region, ...compared, remedies };
  } finally {
    clients.close();
  }
};
