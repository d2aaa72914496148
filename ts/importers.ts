/**
 * `loaderx/importers`: files to containers. Begin with {@link importFiles}.
 *
 * @packageDocumentation
 */
export {
  type ImportedContainer,
  type ImportFormat,
  type ImportOptions,
  type ImportProgress,
  type ImportResult,
  type ImportSources,
  importFiles,
  type ReadOptions,
  surveyFiles,
} from './importers/import.js';
export { loadTokenizer, type Tokenizer } from './importers/tokenizer.js';
export type { MemberLimits } from './importers/webdataset.js';
