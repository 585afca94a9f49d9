/** The environment of a handler's own clients: local endpoints, and credentials that nobody checks. */
import { vi } from "vitest";

export const stubAws = (endpoints: Readonly<Record<string, string>>): void => {
  const all = { AWS_REGION: "local", AWS_ACCESS_KEY_ID: "local", AWS_SECRET_ACCESS_KEY: "local", ...endpoints };
  for (const [name, value] of Object.entries(all)) vi.stubEnv(name, value);
};
