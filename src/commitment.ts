/**
 * A commit's promise that knows whether anybody waits for it, so that a failure nobody looks at still fails the run
 * instead of passing unseen (or ending the process as an unhandled rejection).
 */
export class Commitment extends Promise<void> {
  /** Promises derived from this one are plain. */
  static override get [Symbol.species]() {
    return Promise;
  }

  /** Somebody has asked for the outcome. */
  observed = false;

  // biome-ignore lint/suspicious/noThenProperty: it is a promise
  override then<A = void, B = never>(
    // biome-ignore lint/suspicious/noConfusingVoidType: as in Promise<void>
    onFulfilled?: ((value: void) => A | PromiseLike<A>) | null,
    onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    this.observed = true;
    return super.then(onFulfilled, onRejected);
  }
}

/** Collects the failures of commits that nobody has asked about. */
export const commitmentLedger = () => {
  const failed: { readonly commitment: Commitment; readonly error: unknown }[] = [];
  return {
    track: (result: Promise<void>): Commitment => {
      const commitment: Commitment = new Commitment((resolve, reject) => {
        result.then(resolve, (error) => {
          failed.push({ commitment, error });
          reject(error);
        });
      });
      // Handled, without counting as asked for.
      Promise.prototype.then.call(commitment, undefined, () => {});
      return commitment;
    },
    /** The first failure that nobody has asked about. */
    unseen: (): { readonly error: unknown } | undefined => failed.find(({ commitment }) => !commitment.observed),
    /** To be taken when something is asked for: tells later of a failure that whoever asked can't have looked at by then. */
    lookout: (): (() => { readonly error: unknown } | undefined) => {
      const known = new Set(failed.filter(({ commitment }) => commitment.observed));
      return () => failed.find((failure) => !known.has(failure));
    },
  };
};
