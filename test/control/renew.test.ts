import { renewConformance } from "./conformance-renew.ts";
import { useDynamo } from "./dynamo.ts";

const dynamo = useDynamo();
renewConformance(dynamo);
