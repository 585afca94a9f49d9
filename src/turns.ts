/** One thing at a time, in the order asked for. */
export interface Turns {
  /** Runs `task` when all that was asked for before has settled. */
  take<T>(task: () => Promise<T>): Promise<T>;
  /** Resolves when nothing is waiting or under way. */
  idle(): Promise<void>;
}

export const turns = (): Turns => {
  let last: Promise<unknown> = Promise.resolve();
  return {
    take: (task) => {
      const result = last.then(task);
      last = result.catch(() => {});
      return result;
    },
    idle: async () => {
      for (let seen: unknown; seen !== last; ) {
        seen = last;
        await last;
      }
    },
  };
};
