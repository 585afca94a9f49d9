import { acquireConformance } from "./conformance-acquire.ts";
import { useDynamo } from "./dynamo.ts";

const dynamo = useDynamo();
acquireConformance(dynamo);
