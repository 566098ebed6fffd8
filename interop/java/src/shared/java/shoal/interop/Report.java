package shoal.interop;

/** Runs checks and prints a line for each. */
public final class Report {
    private int failed;

    public int failed() {
        return failed;
    }

    /** @return whether it passed */
    public boolean check(String name, Check check) {
        try {
            var remark = check.run();
            System.out.println("ok " + name + (remark == null ? "" : ": " + remark));
            return true;
        } catch (Exception | AssertionError error) {
            failed++;
            System.out.println("FAIL " + name + ": " + String.valueOf(error).replace('\n', '|'));
            if (System.getenv("INTEROP_TRACE") != null) {
                error.printStackTrace();
            }
            return false;
        }
    }

    public static void same(String what, Object expected, Object actual) {
        if (!expected.equals(actual)) {
            throw new AssertionError(what + ": expected " + expected + ", got " + actual);
        }
    }

    public static void that(boolean holds, String otherwise) {
        if (!holds) {
            throw new AssertionError(otherwise);
        }
    }

    /** A check fails with an exception. It may return a remark. */
    public interface Check {
        String run() throws Exception;
    }
}
