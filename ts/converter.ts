/**
 * `loaderx/converter`: datasets to containers. Begin with {@link huggingface} or {@link parquetFolder},
 * and {@link convert}.
 *
 * @packageDocumentation
 */
export { type ConvertOptions, type ConvertProgress, convert } from './converter/convert.js';
export type {
  ArrayColumn,
  BatchOptions,
  BytesColumn,
  ColumnValues,
  Dataset,
  DatasetSource,
  DatasetSplits,
  Feature,
  Features,
  FileName,
  NumberColumn,
  RowBatch,
} from './converter/dataset.js';
export { featuresOfCard } from './converter/features.js';
export { type HubOptions, type HubProgress, huggingface } from './converter/hub.js';
export type { ImageLimits } from './converter/images.js';
export type { StringRule } from './converter/layout.js';
export type { NameRule } from './converter/names.js';
export {
  type ParquetFolderOptions,
  type ParquetLimits,
  type ParquetOptions,
  parquetFolder,
  parquetSplits,
} from './converter/parquet.js';
