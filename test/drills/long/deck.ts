/** Chance for drills: drawn from a deck that is shuffled again when it is through, so that even a short drill has every kind. */
import { seededRandom } from "../../../src/rehearse/random.ts";

export interface Chance {
  /** From 0 up to 1. */
  random(): number;
  /** From `least` up to `most`. */
  between(least: number, most: number): number;
  /** Whether it comes up, with this probability. */
  happens(probability: number): boolean;
  pick<T>(of: readonly T[]): T | undefined;
}

export const chanceBy = (seed: number): Chance => {
  const random = seededRandom(seed);
  return {
    random,
    between: (least, most) => least + random() * (most - least),
    happens: (probability) => random() < probability,
    pick: (of) => of[Math.floor(random() * of.length)],
  };
};

/** The next card each time it is called. */
export const deckOf = <Card>(cards: readonly [Card, ...Card[]], { random }: Chance): (() => Card) => {
  let left: Card[] = [];
  return () => {
    if (left.length === 0) left = [...cards];
    return left.splice(Math.floor(random() * left.length), 1)[0] as Card;
  };
};
