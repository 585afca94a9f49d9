/** Several things at once, and their results in the order they were given. */

/**
 * Starts `task` for up to `atOnce` of `inputs` at a time, and yields each input with its result in order. A rejected
 * result is yielded as a rejected promise, so that what came before it can be used first.
 */
export function* inOrder<Input, Result>(
  inputs: readonly Input[],
  atOnce: number,
  task: (input: Input) => Result | Promise<Result>,
): Generator<{ readonly input: Input; readonly result: Result | Promise<Result> }> {
  const started: (Result | Promise<Result>)[] = [];
  const start = (input: Input) => {
    const result = settled(() => task(input));
    // Its turn comes later; until then its failure isn't unhandled.
    if (result instanceof Promise) result.catch(() => {});
    started.push(result);
  };
  for (let index = 0; index < inputs.length; index += 1) {
    while (started.length < inputs.length && started.length < index + atOnce) start(inputs[started.length] as Input);
    yield { input: inputs[index] as Input, result: started[index] as Result | Promise<Result> };
  }
}

/** What is thrown at once waits for its turn, too. */
const settled = <Result>(task: () => Result | Promise<Result>): Result | Promise<Result> => {
  try {
    return task();
  } catch (error) {
    return Promise.reject(error);
  }
};
