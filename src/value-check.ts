/**
 * What a value from outside must be: a job's options, an event. These checks are in every function's bundle and run at every
 * cold start, of which the smallest schema library took a twentieth; so they are written out here. They say where a value
 * isn't what it must be, and change nothing.
 */

type Path = readonly (string | number)[];

/** A place where a value isn't what it must be; or an object with keys that it mustn't have. */
interface Misfit {
  readonly path: Path;
  readonly unknownKeys?: readonly string[];
}

/** Finds what is wrong with a value; nothing where it is a `T`. */
export interface Check<T> {
  (value: unknown, path: Path): readonly Misfit[];
  /** Only for the type. */
  readonly type?: T;
}

export type Checked<Of> = Of extends Check<infer T> ? T : never;

type Fields = Readonly<Record<string, Check<unknown>>>;
type OptionalKeys<F extends Fields> = { [K in keyof F]: undefined extends Checked<F[K]> ? K : never }[keyof F];
type ObjectOf<F extends Fields> = { [K in Exclude<keyof F, OptionalKeys<F>>]: Checked<F[K]> } & {
  [K in OptionalKeys<F>]?: Checked<F[K]>;
};

/** Whatever `test` is true of. */
export const is =
  <T>(test: (value: unknown) => boolean): Check<T> =>
  (value, path) =>
    test(value) ? [] : [{ path }];

export const optional =
  <T>(check: Check<T>): Check<T | undefined> =>
  (value, path) =>
    value === undefined ? [] : check(value, path);

export const oneOf = <const T>(...values: readonly T[]): Check<T> => is((value) => values.includes(value as T));

export const trueOrFalse: Check<boolean> = oneOf(true, false);

export const textThat = (test: (text: string) => boolean): Check<string> =>
  is((value) => typeof value === "string" && test(value));

/** Both bounds are allowed. */
export const wholeNumber = (least: number, most = Number.MAX_SAFE_INTEGER): Check<number> =>
  is((value) => Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most);

export const numberThat = (test: (value: number) => boolean): Check<number> =>
  is((value) => Number.isFinite(value) && test(value as number));

export const either = <One, Other>(one: Check<One>, other: Check<Other>): Check<One | Other> =>
  is((value) => one(value, []).length === 0 || other(value, []).length === 0);

export const listOf =
  <T>(check: Check<T>, least = 0, most = Number.POSITIVE_INFINITY): Check<T[]> =>
  (value, path) => {
    if (!Array.isArray(value) || value.length < least || value.length > most) return [{ path }];
    return value.flatMap((each, place) => check(each, [...path, place]));
  };

/** An object with these fields; other keys are refused, or else ignored. */
export const objectOf =
  <F extends Fields>(fields: F, others: "refused" | "ignored" = "refused"): Check<ObjectOf<F>> =>
  (value, path) => {
    if (!isRecord(value)) return [{ path }];
    const unknownKeys = others === "refused" ? Object.keys(value).filter((key) => !Object.hasOwn(fields, key)) : [];
    return [
      ...Object.entries(fields).flatMap(([key, check]) => check(value[key], [...path, key])),
      ...(unknownKeys.length === 0 ? [] : [{ path, unknownKeys }]),
    ];
  };

export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
