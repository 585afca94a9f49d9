import { recordsConformance } from "./conformance-records.ts";
import { useDynamo } from "./dynamo.ts";

const dynamo = useDynamo();
recordsConformance(dynamo);
