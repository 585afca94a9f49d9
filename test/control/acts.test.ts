import { actsConformance } from "./conformance-acts.ts";
import { useDynamo } from "./dynamo.ts";

const dynamo = useDynamo();
actsConformance(dynamo);
