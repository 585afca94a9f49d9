/** A point in a job's work where a test holds it. */
export interface Gate {
  /** Resolves when the work has got there for the first time. */
  readonly reached: Promise<void>;
  /** For the work: resolves once the gate is open. */
  pass(): Promise<void>;
  open(): void;
}

export const gate = (): Gate => {
  let reach = () => {};
  let open = () => {};
  const reached = new Promise<void>((resolve) => {
    reach = resolve;
  });
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return {
    reached,
    pass: () => {
      reach();
      return opened;
    },
    open: () => open(),
  };
};

/** For work that never comes to an end. */
export const never = (): Promise<never> => new Promise(() => {});
