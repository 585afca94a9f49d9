/**
 * What the plugin uses of the serverless CLI: of osls 4 and serverless 3, which were tried, and of serverless 4 by its
 * documentation (https://www.serverless.com/framework/docs/guides/plugins/creating-plugins).
 */
import type { Resource } from "../template.ts";

export interface Serverless {
  readonly serviceDir: string;
  readonly processedInput: { readonly commands: readonly string[] };
  readonly configurationInput: Configuration;
  readonly service: Service;
  readonly configSchemaHandler: { defineCustomProperties(schema: object): void };
  readonly classes: { readonly Error: new (message: string, code: string) => Error };
  getProvider(name: "aws"): AwsProvider;
  extendConfiguration(path: readonly string[], value: unknown): void;
  addServiceOutputSection?(name: string, content: readonly string[]): void;
}

/** serverless.yml, with its variables worked out. */
export interface Configuration {
  readonly service: string;
  readonly provider: {
    readonly name: string;
    readonly runtime?: string;
    readonly region?: string;
    readonly memorySize?: number;
    readonly environment?: Readonly<Record<string, unknown>>;
    readonly vpc?: unknown;
    readonly tracing?: { readonly lambda?: unknown };
  };
  readonly custom?: { readonly cronfence?: unknown };
  /** A list where parts of it come from other files. */
  readonly functions?: Functions | readonly Functions[];
  readonly package?: { readonly patterns?: readonly string[] };
}

type Functions = Readonly<Record<string, { readonly name?: string } | null>>;

interface Service {
  readonly provider: {
    readonly compiledCloudFormationTemplate?: { Resources: Record<string, Resource> };
    /** What `deploy function` found deployed. */
    readonly remoteFunctionData?: { readonly Configuration?: { readonly Role?: string } };
  };
  getFunction(key: string): { role?: unknown; package?: Record<string, unknown> };
}

export interface AwsProvider {
  getStage(): string;
  getRegion(): string;
  readonly naming: { getLambdaLogicalId(functionKey: string): string; getStackName(): string };
  /** osls 4: settings for clients of the AWS SDK 3. */
  getAwsSdkV3Config?(): Promise<object>;
  /** serverless 3 and 4. */
  request?(service: string, method: string, params: object): Promise<unknown>;
}

/** What a plugin says things with. */
export interface Writers {
  readonly log: { notice(text: string): void; warning(text: string): void };
}
