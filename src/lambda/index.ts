/** `cronfence/lambda`: jobs as Lambda functions, and the lease for existing middy handlers. */
export { InvalidEventError, type Probe, type ProbeAnswer, WrongVersionError } from "./event.ts";
export { EarlyAnswerError, type FencedContext, type FencedLeaseOptions, fencedLease } from "./fenced-lease.ts";
export { type JobHandler, type LambdaDeps, lambdaHandler } from "./handler.ts";
export { type StartByInvokingOptions, startByInvoking, UnknownFunctionError } from "./start-job.ts";
