/// `None` if `rows` do not determine the coefficients, which are not negative.
pub(super) fn least_squares(rows: &[Vec<f64>], values: &[f64]) -> Option<Vec<f64>> {
    let width = rows.first()?.len();
    let mut free: Vec<usize> = (0..width).collect();
    loop {
        let solved = normal(rows, values, &free)?;
        let worst = (solved.iter().enumerate()).min_by(|(_, a), (_, b)| a.total_cmp(b))?;
        if *worst.1 >= 0.0 {
            let mut all = vec![0.0; width];
            for (at, value) in free.iter().zip(solved) {
                all[*at] = value;
            }
            return Some(all);
        }
        // A coefficient that noise makes negative becomes zero.
        let worst = worst.0;
        free.remove(worst);
        if free.is_empty() {
            return Some(vec![0.0; width]);
        }
    }
}

fn normal(rows: &[Vec<f64>], values: &[f64], free: &[usize]) -> Option<Vec<f64>> {
    let size = free.len();
    // With scaled columns, a small pivot means dependence instead of a small unit.
    let scale: Vec<f64> = (free.iter())
        .map(|at| rows.iter().map(|row| row[*at].abs()).fold(0.0, f64::max))
        .collect();
    if scale.contains(&0.0) {
        return None;
    }
    let cell = |row: &[f64], at: usize| row[free[at]] / scale[at];
    let mut matrix = vec![vec![0.0; size + 1]; size];
    for (row, value) in rows.iter().zip(values) {
        for (i, equation) in matrix.iter_mut().enumerate() {
            for (j, sum) in equation[..size].iter_mut().enumerate() {
                *sum += cell(row, i) * cell(row, j);
            }
            equation[size] += cell(row, i) * value;
        }
    }
    for at in 0..size {
        let pivot =
            (at..size).max_by(|a, b| matrix[*a][at].abs().total_cmp(&matrix[*b][at].abs()))?;
        matrix.swap(at, pivot);
        if matrix[at][at].abs() < 1e-9 {
            return None;
        }
        let upper = matrix[at].clone();
        for (i, row) in matrix.iter_mut().enumerate() {
            if i != at {
                let factor = row[at] / upper[at];
                for (cell, above) in row.iter_mut().zip(&upper) {
                    *cell -= factor * above;
                }
            }
        }
    }
    Some(
        (0..size)
            .map(|at| matrix[at][size] / matrix[at][at] / scale[at])
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::least_squares;

    fn close(found: &[f64], expected: &[f64]) {
        let near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-6;
        assert!(found.iter().zip(expected).all(near), "{found:?}");
    }

    #[test]
    fn exact_data_gives_its_coefficients() {
        let rows = [
            [10.0, 0.0, 0.0],
            [8.0, 90_000.0, 0.0],
            [8.0, 0.0, 50_000.0],
            [9.0, 70_000.0, 100.0],
        ];
        let rows: Vec<Vec<f64>> = rows.iter().map(|row| row.to_vec()).collect();
        let costs = [1500.0, 12.5, 31.0];
        let values: Vec<f64> = (rows.iter())
            .map(|row| row.iter().zip(costs).map(|(a, b)| a * b).sum())
            .collect();
        close(&least_squares(&rows, &values).unwrap(), &costs);
    }

    #[test]
    fn noise_is_averaged_and_never_a_gain() {
        let rows: Vec<Vec<f64>> = [1.0, 2.0, 3.0].iter().map(|x| vec![1.0, *x]).collect();
        // The best line through these values is negative at 0, so the fit goes through zero.
        let found = least_squares(&rows, &[1.0, 4.0, 7.0]).unwrap();
        close(&found, &[0.0, 30.0 / 14.0]);
    }

    #[test]
    fn loads_that_are_always_alike_cannot_be_told_apart() {
        let rows = vec![vec![1.0, 2.0], vec![2.0, 4.0], vec![3.0, 6.0]];
        assert_eq!(least_squares(&rows, &[1.0, 2.0, 3.0]), None);
    }
}
