/** What a job can be called. Its name is part of keys, metrics, function names and ARNs. */
export const isJobName = (name: unknown): name is string =>
  typeof name === "string" && /^[A-Za-z0-9_-]{1,64}$/.test(name);
