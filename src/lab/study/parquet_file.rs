//! Tables as Parquet, uncompressed and in one row group: studies have thousands of rows, not billions.

use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;

use super::{Column, Table, Values};

/// A table as the bytes of a file.
pub(super) fn to_bytes(table: &Table) -> Result<Vec<u8>> {
    let fields =
        table.columns.iter().map(|column| field(column).map(Arc::new)).collect::<Result<Vec<_>>>()?;
    let schema = Arc::new(Type::group_type_builder("study").with_fields(fields).build()?);
    // The library's own version would change the bytes with every update.
    let properties = WriterProperties::builder().set_created_by("rota".to_owned()).build();
    let mut bytes = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut bytes, schema, Arc::new(properties))?;
    let mut group = writer.next_row_group()?;
    let mut columns = table.columns.iter();
    while let Some(mut column_writer) = group.next_column()? {
        let column = columns.next().ok_or_else(|| ParquetError::General("a column too many".into()))?;
        write(&column.values, column_writer.untyped())?;
        column_writer.close()?;
    }
    group.close()?;
    writer.close()?;
    Ok(bytes)
}

fn field(column: &Column) -> Result<Type> {
    let (physical, logical) = match column.values {
        Values::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        Values::Whole(_) => (Physical::INT64, None),
        Values::Number(_) => (Physical::DOUBLE, None),
    };
    Type::primitive_type_builder(&column.name, physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(logical)
        .build()
}

fn write(values: &Values, writer: &mut ColumnWriter<'_>) -> Result<()> {
    match (values, writer) {
        (Values::Text(values), ColumnWriter::ByteArrayColumnWriter(writer)) => {
            let present: Vec<ByteArray> = values.iter().flatten().map(|text| text.as_str().into()).collect();
            writer.write_batch(&present, Some(&levels(values)), None)?;
        }
        (Values::Whole(values), ColumnWriter::Int64ColumnWriter(writer)) => {
            let present: Vec<i64> = values.iter().flatten().copied().collect();
            writer.write_batch(&present, Some(&levels(values)), None)?;
        }
        (Values::Number(values), ColumnWriter::DoubleColumnWriter(writer)) => {
            let present: Vec<f64> = values.iter().flatten().copied().collect();
            writer.write_batch(&present, Some(&levels(values)), None)?;
        }
        _ => return Err(ParquetError::General("a column of another type than its field".into())),
    }
    Ok(())
}

/// 1 where a value is, 0 where none is: what Parquet calls definition levels.
fn levels<T>(values: &[Option<T>]) -> Vec<i16> {
    values.iter().map(|value| i16::from(value.is_some())).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;

    use super::*;

    fn reader(table: &Table) -> SerializedFileReader<std::fs::File> {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(&to_bytes(table).expect("written")).expect("kept");
        SerializedFileReader::new(file).expect("a Parquet file")
    }

    #[test]
    fn a_table_comes_back_value_by_value() {
        let table = Table {
            columns: vec![
                Column::text("policy", vec![Some("las+tune".into()), None, Some("ü".into())]),
                Column::whole("seed", vec![Some(1), Some(-2), None]),
                Column::number("avg_jct_s", vec![None, Some(0.1), Some(1e300)]),
            ],
        };
        let reader = reader(&table);
        let rows: Vec<Vec<Field>> = reader
            .get_row_iter(None)
            .expect("rows")
            .map(|row| row.expect("a row").get_column_iter().map(|(_, field)| field.clone()).collect())
            .collect();
        assert_eq!(
            rows,
            [
                vec![Field::Str("las+tune".into()), Field::Long(1), Field::Null],
                vec![Field::Null, Field::Long(-2), Field::Double(0.1)],
                vec![Field::Str("ü".into()), Field::Null, Field::Double(1e300)],
            ]
        );
    }

    #[test]
    fn an_empty_table_is_a_file_too() {
        let table = Table { columns: vec![Column::whole("run", Vec::new())] };
        let reader = reader(&table);
        assert_eq!(reader.metadata().file_metadata().num_rows(), 0);
    }
}
