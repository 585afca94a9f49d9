/** Whether a sequence has come back to where it was, in constant memory: Brent's algorithm. */

/**
 * A function that is given one value after the other, and says when one comes again. It may take up to three times round
 * to notice.
 */
export const cycleWatch = (): ((value: string) => boolean) => {
  let remembered: string | undefined;
  let steps = 0;
  let reach = 1;
  return (value) => {
    if (value === remembered) return true;
    steps += 1;
    if (steps === reach) {
      remembered = value;
      steps = 0;
      reach *= 2;
    }
    return false;
  };
};
