import { commitConformance } from "./conformance-commit.ts";
import { useDynamo } from "./dynamo.ts";

const dynamo = useDynamo();
commitConformance(dynamo);
