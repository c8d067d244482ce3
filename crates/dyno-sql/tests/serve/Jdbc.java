import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Timestamp;
import java.sql.Types;
import java.util.ArrayList;
import java.util.List;

/** PostgreSQL's JDBC driver at a table of 1,000 spots. Ends with an exception at what is wrong. */
public class Jdbc {
    static final String ENDLESS = "SELECT count(*) FROM generate_series(1, 1000000) a(v), "
        + "generate_series(1, 1000000) b(v) WHERE a.v * b.v % 7 = 3";

    static void check(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }

    static List<String> column(ResultSet rows, String name) throws SQLException {
        List<String> values = new ArrayList<>();
        while (rows.next()) {
            values.add(rows.getString(name));
        }
        return values;
    }

    static void refused(Statement statement, String sql, String code) throws SQLException {
        try {
            statement.execute(sql);
        } catch (SQLException error) {
            check(code.equals(error.getSQLState()), sql + ": " + error.getSQLState() + " " + error);
            return;
        }
        throw new AssertionError(sql + " was not refused");
    }

    /** What tools over JDBC ask before they show a table. */
    static void catalogue(DatabaseMetaData about) throws SQLException {
        String[] kinds = {"TABLE"};
        List<String> tables = column(about.getTables(null, "public", "%", kinds), "TABLE_NAME");
        check(tables.contains("spots"), "tables: " + tables);
        List<String> columns = column(about.getColumns(null, "public", "spots", "%"), "COLUMN_NAME");
        check(columns.contains("callsign") && columns.contains("timestamp"), "columns: " + columns);
        check(column(about.getSchemas(), "TABLE_SCHEM").contains("public"), "schemas");
        check(column(about.getCatalogs(), "TABLE_CAT").contains("dyno"), "catalogues");
        check(column(about.getTypeInfo(), "TYPE_NAME").contains("int8"), "types");
        check(!about.getPrimaryKeys(null, "public", "spots").next(), "a primary key");
        check(!about.getIndexInfo(null, "public", "spots", false, true).next(), "an index");
        check(!about.getImportedKeys(null, "public", "spots").next(), "a foreign key");
        check(!about.getExportedKeys(null, "public", "spots").next(), "a key of others");
    }

    /** From the fifth run on the driver names the statement and reads binary rows. */
    static void prepared(Connection connection) throws SQLException {
        String sql = "SELECT id, callsign, snr, timestamp FROM spots WHERE id > ? AND callsign LIKE ? "
            + "AND timestamp >= ? ORDER BY id LIMIT ?";
        PreparedStatement statement = connection.prepareStatement(sql);
        ResultSetMetaData shape = statement.getMetaData();
        check(shape.getColumnCount() == 4, "four columns");
        check(shape.getColumnType(1) == Types.BIGINT, "a number of 64 bits");
        check(shape.getColumnTypeName(4).equals("timestamptz"), "a time");
        for (int round = 0; round < 8; round++) {
            statement.setLong(1, 100L * round);
            statement.setString(2, "K%");
            statement.setTimestamp(3, new Timestamp(0));
            statement.setInt(4, 5);
            ResultSet rows = statement.executeQuery();
            int count = 0;
            while (rows.next()) {
                check(rows.getLong(1) > 100L * round, "id " + rows.getLong(1));
                check(rows.getString(2).equals("K1ABC"), "callsign " + rows.getString(2));
                check(rows.getTimestamp(4).getTime() > 0, "time " + rows.getTimestamp(4));
                count++;
            }
            check(count == 5, "rows of round " + round + ": " + count);
        }
        statement = connection.prepareStatement("SELECT count(*) FROM spots WHERE snr = ?");
        statement.setNull(1, Types.INTEGER);
        ResultSet rows = statement.executeQuery();
        check(rows.next() && rows.getLong(1) == 0, "nothing equals NULL");
    }

    static int counted(Statement statement) throws SQLException {
        ResultSet rows = statement.executeQuery("SELECT id FROM spots ORDER BY id");
        int count = 0;
        while (rows.next()) {
            count++;
        }
        return count;
    }

    public static void main(String[] args) throws SQLException {
        String address = "jdbc:postgresql://127.0.0.1:" + args[0] + "/dyno";
        try (Connection connection = DriverManager.getConnection(address, "me", "")) {
            catalogue(connection.getMetaData());
            prepared(connection);
            Statement statement = connection.createStatement();
            refused(statement, "INSERT INTO spots VALUES (1)", "25006");
            refused(statement, "SELECT nothing FROM spots", "42703");
            statement.setMaxRows(7);
            check(counted(statement) == 7, "at most seven rows");
            statement.setQueryTimeout(1);
            refused(statement, ENDLESS, "57014");
            // A cursor takes the rows in portions, which needs a transaction.
            connection.setAutoCommit(false);
            Statement portions = connection.createStatement();
            portions.setFetchSize(64);
            check(counted(portions) == 1000, "all rows in portions");
            connection.commit();
            check(connection.isValid(5), "the connection goes on");
        }
    }
}
