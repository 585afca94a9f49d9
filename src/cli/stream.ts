/** Long results, a page at a time: memory stays flat, also where whoever reads them is slow. */
import { cleaned } from "./paint.ts";
import { clearProgress } from "./progress.ts";

/** Resolves when standard output can take more. */
export const write = (text: string): Promise<void> => {
  clearProgress();
  return new Promise((resolve) => {
    if (process.stdout.write(cleaned(text))) resolve();
    else process.stdout.once("drain", resolve);
  });
};

/** The values of `items` in pages of at most `size`. */
export async function* pagesOf<T>(items: AsyncIterable<T>, size: number): AsyncGenerator<readonly T[]> {
  let page: T[] = [];
  for await (const item of items) {
    page.push(item);
    if (page.length < size) continue;
    yield page;
    page = [];
  }
  if (page.length > 0) yield page;
}

/** Writes `{ ...head, [name]: [...items], ...tail() }` as JSON, each item on a line of its own. */
export const writeJson = async (
  head: Readonly<Record<string, unknown>>,
  name: string,
  items: AsyncIterable<unknown>,
  tail: () => Readonly<Record<string, unknown>>,
): Promise<void> => {
  const fields = (of: Readonly<Record<string, unknown>>) =>
    Object.entries(of).map(([key, value]) => `  ${JSON.stringify(key)}: ${JSON.stringify(value)}`);
  await write(`{\n${[...fields(head), `  ${JSON.stringify(name)}: [`].join(",\n")}`);
  let count = 0;
  for await (const page of pagesOf(items, 250)) {
    await write(`${count === 0 ? "" : ","}${page.map((item) => `\n    ${JSON.stringify(item)}`).join(",")}`);
    count += page.length;
  }
  await write(`${[count === 0 ? "]" : "\n  ]", ...fields(tail())].join(",\n")}\n}\n`);
};
