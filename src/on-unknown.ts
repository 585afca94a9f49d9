/** What becomes of an effect that a run began and died over. */
import type { OnceState } from "./control/control-store.ts";
import { EffectUnknownError } from "./errors.ts";
import type { Json } from "./json.ts";

/**
 * What to do about an effect that an earlier run began and whose end nobody recorded. `retry`: call it again. `block`: fail
 * the run until a person says what became of it. A function finds it out.
 */
export type OnUnknown =
  | "retry"
  | "block"
  | ((unknown: {
      /** As given to `run.once`. */
      readonly key: string;
      readonly idempotencyKey: string;
      /** When it was begun, in milliseconds since the epoch, and by which run. */
      readonly at: number;
      readonly run: string;
    }) => Promise<{ readonly done: true; readonly result?: Json } | { readonly done: false }>);

/** What an earlier run's effect came to; `undefined` if it is to be called. */
export const findOut = async (
  job: string,
  onUnknown: OnUnknown,
  key: string,
  idempotencyKey: string,
  { at, run }: OnceState,
): Promise<{ readonly result: Json | undefined } | undefined> => {
  if (onUnknown === "retry") return undefined;
  if (onUnknown === "block") throw new EffectUnknownError(job, key, run, at);
  const found = await onUnknown({ key, idempotencyKey, at, run });
  return found.done ? { result: found.result } : undefined;
};
