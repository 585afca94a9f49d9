/**
 * Text that comes from anywhere, as a part of a line for people: it stays within its line, and can't change what a terminal
 * shows beside it. What JSON's own escapes can say is said so, which leaves all other text as it is.
 */
export const printable = (text: string): string =>
  text.replace(unprintable, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);

/**
 * A line break would begin a line that nobody wrote, an escape sequence can rewrite what is there, and a mark of direction
 * turns the text after it round: https://www.unicode.org/reports/tr36/#Bidirectional_Text_Spoofing
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are meant
const unprintable = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;
