/** A problem, as one of a list of them, where something is wrong. */
export const problemIf = (wrong: boolean, problem: string): string[] => (wrong ? [problem] : []);
