/** Instants as people and schedules write them. */

const form = /^(\d{4})-(\d\d)-(\d\d)T([01]\d|2[0-3]):\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:\d\d)$/;

/** Whether `text` is an ISO 8601 instant with a zone, on a day that exists. */
export const isInstant = (text: string): boolean => {
  const [, year, month, day] = form.exec(text) ?? [];
  // Date.parse takes February 30 for March 2.
  const isDay = new Date(Date.UTC(Number(year), Number(month) - 1, Number(day))).getUTCDate() === Number(day);
  return isDay && Number.isFinite(Date.parse(text));
};
