/** A CloudFormation template, as far as drift is looked for in it. */
import { CronfenceError } from "../errors.ts";

export type Properties = Readonly<Record<string, unknown>>;

interface TemplateResource {
  readonly Type: string;
  readonly Properties?: Properties;
}

export interface Template {
  readonly Resources: Readonly<Record<string, TemplateResource>>;
}

/** What was given as a template isn't one. */
class InvalidTemplateError extends CronfenceError {
  override readonly name = "InvalidTemplateError";

  constructor(where: string, problem: string) {
    super("INVALID_TEMPLATE", `${where} isn't a CloudFormation template in JSON: ${problem}`);
  }
}

/**
 * @param where names it in the error
 * @throws InvalidTemplateError
 */
export const readTemplate = (text: string, where: string): Template => {
  let read: unknown;
  try {
    read = JSON.parse(text);
  } catch (error) {
    throw new InvalidTemplateError(where, (error as Error).message);
  }
  const { Resources } = (read ?? {}) as Partial<Template>;
  if (typeof Resources !== "object" || Resources === null) throw new InvalidTemplateError(where, "it has no Resources");
  for (const [id, resource] of Object.entries(Resources)) {
    if (typeof resource?.Type !== "string") throw new InvalidTemplateError(where, `resource ${id} has no Type`);
  }
  return { Resources };
};
