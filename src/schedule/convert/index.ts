/** Schedules for other hosts, from the one definition. */

export { toCloudflare } from "./cloudflare.ts";
export {
  type Conversion,
  type ConversionOptions,
  type Converted,
  type RefusalCode,
  type Refused,
  requireConverted,
} from "./conversion.ts";
export { toEventBridge } from "./event-bridge.ts";
export { toKubernetes } from "./kubernetes.ts";
export { toSystemd } from "./systemd.ts";
export { toVercel } from "./vercel.ts";
