import { finishConformance } from "./conformance-finish.ts";
import { useDynamo } from "./dynamo.ts";

const dynamo = useDynamo();
finishConformance(dynamo);
