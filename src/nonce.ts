/** Names that nothing else has. */
import { randomBytes } from "node:crypto";

/**
 * 96 random bits in 16 characters. Shorter than a UUID because the control item holds a dozen of them, and every commit
 * writes that item: it stays under 1 KB.
 */
export const newNonce = (): string => randomBytes(12).toString("base64url");
